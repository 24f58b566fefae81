"""Records of core as JSON and back, by their declared types."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from relaydesk.core.commands import AnyCommand, Outcome
from relaydesk.core.errors import ERRORS, Fault
from relaydesk.core.text import SafeText, safe_text
from relaydesk.core.view.node_view import NodeView, Update
from relaydesk.core.view.sections import FaultView

T = TypeVar("T")

# Our own two ends speak to each other here, but the far one may be broken: text is made safe again.
_WIRE_TEXT_LIMIT: Final = 4096


def _encode_hook(value: Any) -> Any:
    if isinstance(value, SafeText):
        return str(value)
    raise NotImplementedError(f"cannot encode {type(value).__name__}")


def _decode_hook(kind: type, value: Any) -> Any:
    if kind is SafeText and isinstance(value, str):
        return safe_text(value, _WIRE_TEXT_LIMIT)
    raise NotImplementedError(f"cannot decode {kind.__name__}")


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_encode_hook)


def encode(record: Any) -> bytes:
    """A record as compact JSON (UTF-8)."""
    return _ENCODER.encode(record)


def to_builtins(record: Any) -> Any:
    """A record as dicts, lists and scalars."""
    return msgspec.to_builtins(record, enc_hook=_encode_hook)


def decode(data: bytes | str, kind: type[T]) -> T:
    """JSON as a record of ``kind``. Raises `msgspec.MsgspecError` or `RecursionError` on anything else."""
    return msgspec.json.decode(data, type=kind, dec_hook=_decode_hook)


def convert(value: Any, kind: type[T]) -> T:
    """JSON-able data as a record of ``kind``. Raises `msgspec.ValidationError`."""
    return msgspec.convert(value, type=kind, dec_hook=_decode_hook)


def fault_view(fault: Fault) -> FaultView:
    """A fault as a view carries it."""
    return FaultView(
        code=fault.code,
        message=safe_text(fault.message, 1024),
        hint=safe_text(fault.hint, 512),
        param=fault.param,
        retry_after=fault.retry_after,
    )


def fault_of(view: FaultView) -> Fault:
    """A view's fault as a value again; a code this version does not know becomes ``internal_error``."""
    code = view.code if view.code in ERRORS else "internal_error"
    return Fault(code, view.message, view.hint, view.param, view.retry_after)


@cache
def schema_fingerprint() -> str:
    """Sixteen hex digits that change whenever a record that crosses the control socket does."""
    shapes = msgspec.inspect.multi_type_info([NodeView, Update, AnyCommand, Outcome])
    return hashlib.sha256(repr(shapes).encode()).hexdigest()[:16]

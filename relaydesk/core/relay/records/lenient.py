"""Foreign JSON read field by field, for what only advises (wire §5.1).

One wrong field costs itself and nothing else. What binds is signed and read strictly (`canonical`).
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, Final, TypeVar, get_args

import msgspec

from relaydesk.core.text import SafeText, safe_text

T = TypeVar("T", bound=msgspec.Struct)

# Foreign text is cut to this; what is longer than a name has no place in these documents.
TEXT_LIMIT: Final = 256


class Lenient(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of what is read field by field. A field without a default is always written.

    ``__fallback__`` says what such a field is where it is missing or wrong.
    """

    __fallback__: ClassVar[dict[str, Any]] = {}


def _hook(kind: type, value: Any) -> Any:
    if kind is SafeText and isinstance(value, str):
        return safe_text(value, TEXT_LIMIT)
    raise ValueError(f"cannot decode {kind.__name__}")


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind, dec_hook=_hook)


@cache
def _plan(kind: type[Any]) -> tuple[tuple[str, str, Any, type[Any] | None], ...]:
    """Of each field: its name in JSON, its name here, its type, and the record it holds, if one."""
    return tuple(
        (field.encode_name, field.name, field.type, _record_in(field.type))
        for field in msgspec.structs.fields(kind)
    )


def _record_in(wanted: Any) -> type[Any] | None:
    for kind in (wanted, *get_args(wanted)):
        if isinstance(kind, type) and issubclass(kind, Lenient):
            return kind
    return None


def members(raw: bytes | msgspec.Raw) -> dict[str, msgspec.Raw] | None:
    """The members of a JSON object, each still JSON; None where it is no object."""
    return read(dict[str, msgspec.Raw], raw) if raw else None


def items(raw: bytes | msgspec.Raw, limit: int) -> list[msgspec.Raw]:
    """The first ``limit`` items of a JSON list, each still JSON; none where it is no list."""
    found: list[msgspec.Raw] | None = read(list[msgspec.Raw], raw) if raw else None
    return (found or [])[:limit]


def read(kind: Any, raw: bytes | msgspec.Raw) -> Any:
    """One value of type ``kind``, or None where it is not of it (or null)."""
    try:
        return _decoder(kind).decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def read_fields(kind: type[T], found: dict[str, msgspec.Raw], skip: frozenset[str] = frozenset()) -> T:
    """A record of ``kind`` from what of ``found`` fits; ``skip`` names fields that are read otherwise."""
    values: dict[str, Any] = dict(getattr(kind, "__fallback__", {}))
    for key, name, wanted, record in _plan(kind):
        raw = found.get(key)
        if raw is None or name in skip:
            continue
        if record is None:
            value = read(wanted, raw)
        else:
            inner = members(raw)
            value = None if inner is None else read_fields(record, inner)
        if value is not None:
            values[name] = value
    return kind(**values)

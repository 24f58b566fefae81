"""The request that reserves a target's model, signed by who pays (wire §4.3).

The payer's signature binds operator and node, which are not sent: a request caught on its way is of no use
at a sibling, and the set of recipients seen stops it at the same node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from relaydesk.core.relay.address import decode_address
from relaydesk.core.relay.records.canonical import (
    I64,
    I64_MAX,
    I64_MIN,
    U64,
    U64_MAX,
    B,
    RecordError,
    S,
    b64,
    decode_record,
    verify_text,
)
from relaydesk.core.relay.records.ephemeral import is_recipient
from relaydesk.core.relay.ref import NodeRef

DOMAIN: Final = b"zs-reserve-v1\0"
MEDIA_TYPE: Final = "application/vnd.zs-reserve+json"

# How far ahead a payer's clock may be, and how old a signature may be besides.
FUTURE_S: Final = 30
MAX_AGE_S: Final = 60
# How long a recipient is remembered. Only a reserve that succeeded is, so that a refused one can be retried.
REPLAY_S: Final = 90

TEXT_LIMIT: Final = 256
_NULL: Final = b"null"
_COUNTS: Final = ("image_tool_budget", "image_edit_tool_budget", "image_n")


class ReserveError(RecordError):
    """A reserve that is refused. ``code`` is the wire's own (wire §1.5)."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ReserveRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for. Image fields and the bound's version are not signed.

    Our own, only for targets that announce our ledger: ``relaydesk_voucher``, a code that becomes credit, and
    ``relaydesk_settle``, JSON with claims or protests of earlier tickets, as it was sent.
    """

    model: str = ""
    input_count: int = 0
    max_output_count: int = 0
    stream: bool = False
    proxy_recipient: str = ""
    payer_addr: str = ""
    image_tool_budget: int | None = None
    image_edit_tool_budget: int | None = None
    image_n: int | None = None
    image_size: str | None = None
    image_quality: str | None = None
    image_edit: bool | None = None
    payer_sig: str | None = None
    payer_issued_at: int | None = None
    input_bound_version: int | None = None
    relaydesk_voucher: str | None = None
    relaydesk_settle: msgspec.Raw = msgspec.Raw(_NULL)

    @property
    def bound_version(self) -> int:
        """By which version of the input bound the count was measured; not said means 1."""
        return self.input_bound_version or 1

    @property
    def settle(self) -> bytes:
        """The JSON value of ``relaydesk_settle``, or empty."""
        data = bytes(self.relaydesk_settle)
        return b"" if data == _NULL else data


_DECODER: Final = msgspec.json.Decoder(ReserveRequest)


def encode_reserve(request: ReserveRequest) -> bytes:
    """The request as JSON: what was not said is left out."""
    said: dict[str, Any] = msgspec.structs.asdict(request)
    said.pop("relaydesk_settle")
    found = {name: value for name, value in said.items() if value is not None}
    if request.settle:
        found["relaydesk_settle"] = request.relaydesk_settle
    return msgspec.json.encode(found)


def decode_reserve(data: bytes) -> ReserveRequest:
    """A request that was sealed to us. Raises `ReserveError`: ``bad_reserve_envelope`` where it cannot be
    read, else the first rule it breaks, its signature apart.
    """
    try:
        request = decode_record(_DECODER, data, "the reserve")
    except RecordError as error:
        raise ReserveError("bad_reserve_envelope", str(error)) from None
    _check_counts(request)
    if not is_recipient(request.proxy_recipient):
        raise ReserveError("invalid_proxy_recipient", "proxy_recipient is no age recipient")
    if not request.payer_addr:
        raise ReserveError("missing_payer_addr", "payer_addr is missing")
    payer_key(request)
    return request


def payer_key(request: ReserveRequest) -> bytes:
    """The payer's public key (32 bytes). Raises `ReserveError` ``invalid_payer_addr``."""
    try:
        return decode_address(request.payer_addr)
    except ValueError:
        raise ReserveError("invalid_payer_addr", "payer_addr is no address") from None


def reserve_bytes(request: ReserveRequest, ref: NodeRef) -> bytes:
    """What the payer signs for the node ``ref``. Raises `RecordError` where a number is out of range."""
    counts = U64(request.input_count) + U64(request.max_output_count)
    asked = S(request.model) + counts + B(request.stream) + S(request.proxy_recipient)
    ids = U64(ref.operator) + U64(ref.node)
    return DOMAIN + S(request.payer_addr) + ids + asked + I64(request.payer_issued_at or 0)


def sign_reserve(
    sign: Callable[[bytes], bytes], ref: NodeRef, request: ReserveRequest, issued_at: int
) -> ReserveRequest:
    """``request`` for the node ``ref`` with the payer's signature of ``issued_at`` (seconds).

    ``sign`` is the payer key's, over the SHA-256 of what it is given. Raises `RecordError`.
    """
    stamped = msgspec.structs.replace(request, payer_issued_at=issued_at)
    signature = b64(sign(reserve_bytes(stamped, ref)))
    return msgspec.structs.replace(stamped, payer_sig=signature)


def check_payer(request: ReserveRequest, ref: NodeRef, now: int) -> None:
    """Whether the payer signed this for the node ``ref``, lately. Raises `ReserveError`.

    ``invalid_payer_sig`` is to go out with the node's time, by which the caller may stamp anew, once.
    """
    if request.payer_sig is None or request.payer_issued_at is None:
        raise ReserveError("invalid_payer_sig", "the payer's signature is missing")
    if not verify_text(payer_key(request), reserve_bytes(request, ref), request.payer_sig):
        raise ReserveError("invalid_payer_sig", "the payer's signature does not hold for this node")
    if not in_window(request.payer_issued_at, now):
        raise ReserveError("invalid_payer_sig", "the payer's signature is too old or from the future")


def in_window(issued_at: int, now: int) -> bool:
    """Whether a signature of ``issued_at`` may be taken at ``now`` (seconds)."""
    return now - MAX_AGE_S - FUTURE_S <= issued_at <= now + FUTURE_S


def _check_counts(request: ReserveRequest) -> None:
    if not request.model or not request.proxy_recipient:
        raise ReserveError("invalid_reserve", "model and proxy_recipient are required")
    said = (request.image_size, request.image_quality, request.relaydesk_voucher)
    texts = (request.model, *(text or "" for text in said))
    if any(len(text) > TEXT_LIMIT for text in texts):
        raise ReserveError("invalid_reserve", "a text of the reserve is too long")
    for count in (request.input_count, request.max_output_count):
        if not 1 <= count <= U64_MAX:
            raise ReserveError("invalid_reserve", "input_count and max_output_count must be above 0")
    if any(not 0 <= (getattr(request, name) or 0) <= U64_MAX for name in _COUNTS):
        raise ReserveError("invalid_reserve", "a count of images is out of range")
    if not I64_MIN <= (request.payer_issued_at or 0) <= I64_MAX:
        raise ReserveError("invalid_reserve", "payer_issued_at is out of range")
    if request.bound_version not in (1, 2):
        raise ReserveError("invalid_reserve", "input_bound_version is unknown")

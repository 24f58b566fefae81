"""What is inside the envelope of an inference request: a header and the body as it is (wire §4.4).

``zsrq``, version 1, the header's length (u32, big-endian), the header as JSON, then the body's bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from relaydesk.core.relay.records.canonical import RecordError, b64, decode_record, unb64
from relaydesk.core.relay.sealed.admission import TAG_SIZE
from relaydesk.core.relay.sealed.envelope import SealedError

MAGIC: Final = b"zsrq"
VERSION: Final = 1
HEADER_LIMIT: Final = 65536
# Ids are a transaction's (52 characters), a ticket's (24) and a recipient's (62).
ID_LIMIT: Final = 256

_HEAD: Final = struct.Struct(">4sBI")
_NULL: Final = b"null"


@dataclass(frozen=True, slots=True)
class Inner:
    """A request as the target reads it.

    ``tag`` has 32 bytes or none. ``opening`` is the JSON value of our own field ``relaydesk_open``, as it
    was sent, or empty; it goes only to targets that announce our ledger.
    """

    reply_to: str
    tx_id: str
    ticket_id: str = ""
    tag: bytes = field(default=b"", repr=False)
    body: bytes = field(default=b"", repr=False)
    opening: bytes = field(default=b"", repr=False)


class _Header(msgspec.Struct, frozen=True):
    reply_to_public_key: str
    algorand_tx_id: str
    ticket_id: str | None = None
    admission_tag: str | None = None
    relaydesk_open: msgspec.Raw = msgspec.Raw(_NULL)


_DECODER: Final = msgspec.json.Decoder(_Header)


def write_inner(inner: Inner) -> bytes:
    """The frame. Raises `ValueError` where its header would be too long for any reader."""
    header: dict[str, Any] = {"reply_to_public_key": inner.reply_to, "algorand_tx_id": inner.tx_id}
    if inner.ticket_id:
        header["ticket_id"] = inner.ticket_id
    if inner.tag:
        header["admission_tag"] = b64(inner.tag)
    if inner.opening:
        header["relaydesk_open"] = msgspec.Raw(inner.opening)
    data = msgspec.json.encode(header)
    if len(data) > HEADER_LIMIT:
        raise ValueError("the header is too long")
    return _HEAD.pack(MAGIC, VERSION, len(data)) + data + inner.body


def read_inner(frame: bytes) -> Inner:
    """The request of a frame. Raises `SealedError`."""
    if len(frame) < _HEAD.size:
        raise SealedError("the frame is too short")
    magic, version, length = _HEAD.unpack_from(frame)
    if magic != MAGIC or version != VERSION:
        raise SealedError("the frame is not one of version 1")
    if length > HEADER_LIMIT or length > len(frame) - _HEAD.size:
        raise SealedError("the frame's header is longer than it may be")
    end = _HEAD.size + length
    try:
        header = decode_record(_DECODER, frame[_HEAD.size : end], "the frame's header")
        tag = unb64(header.admission_tag, "the tag", TAG_SIZE) if header.admission_tag else b""
    except RecordError as error:
        raise SealedError(str(error)) from None
    opening = bytes(header.relaydesk_open)
    return Inner(
        _id(header.reply_to_public_key),
        _id(header.algorand_tx_id),
        _id(header.ticket_id or ""),
        tag,
        frame[end:],
        b"" if opening == _NULL else opening,
    )


def _id(text: str) -> str:
    """An id, which is printable ASCII: it goes into AADs, where a NUL would shift one part into the next."""
    if len(text) > ID_LIMIT or not (text.isascii() and text.isprintable()):
        raise SealedError("an id of the frame's header is none")
    return text

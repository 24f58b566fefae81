"""What a sealed answer is bound to (wire §4.5). Never sent: both sides build it.

The parts are separated by one NUL byte, so no id may hold one (`inner` refuses such).
"""

from __future__ import annotations

import struct
from typing import Final

RECEIPT: Final = "receipt"
SETTLE_GROUP: Final = "settle-group"

_U64 = struct.Struct(">Q").pack


def body_aad(tx_id: str, ticket_id: str) -> bytes:
    """For the body of an answer that is not streamed. A missing ticket id is the empty string."""
    return f"zs\0body\0{tx_id}\0{ticket_id}".encode()


def frame_prefix(tx_id: str, ticket_id: str) -> bytes:
    """For every frame of a stream; the frame's index, eight bytes big-endian, follows."""
    return f"zs\0frame\0{tx_id}\0{ticket_id}\0".encode()


def frame_aad(tx_id: str, ticket_id: str, index: int) -> bytes:
    """For the frame number ``index`` of a stream, counted from 0."""
    return frame_prefix(tx_id, ticket_id) + _U64(index)


def header_aad(tx_id: str, ticket_id: str, name: str) -> bytes:
    """For a sealed header, or the event that stands for it in a stream: ``RECEIPT`` or ``SETTLE_GROUP``."""
    return f"zs\0hdr\0{tx_id}\0{ticket_id}\0{name}".encode()

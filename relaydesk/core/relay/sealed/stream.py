"""A sealed answer as server-sent events: the side that writes it (wire §4.7).

Each content frame and the receipt are bound to their place by a running index; the settle group, comments
and ``[DONE]`` take none.
"""

from __future__ import annotations

import binascii
import hashlib
import struct
from typing import Final

from relaydesk.core.gateway.sse import DONE_FRAME, HEARTBEAT
from relaydesk.core.relay.records.canonical import b64
from relaydesk.core.relay.sealed.aad import SETTLE_GROUP, frame_prefix, header_aad
from relaydesk.core.relay.sealed.box import Exchange, seal_joined

CONTENT_EVENT: Final = "zs"
SETTLE_EVENT: Final = "zs-settle-group"
RECEIPT_EVENT: Final = "zs-receipt"
KEEP_ALIVE: Final = HEARTBEAT
STREAM_TYPE: Final = "text/event-stream"

_U64 = struct.Struct(">Q").pack


class Sealer:
    """Writes one stream: content frames, then at most one settle group, one receipt, ``[DONE]``.

    Every nonce has 12 random bytes of its own. A call out of this order is a mistake of ours and raises
    `ValueError`: a reader would take it for an attack.
    """

    __slots__ = ("_exchange", "_hash", "_index", "_prefix", "_state")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._prefix = frame_prefix(exchange.tx_id, exchange.ticket_id)
        self._hash = hashlib.sha256()
        self._index = 0
        # 0 content, 1 after the settle group, 2 after the receipt, 3 done.
        self._state = 0

    @property
    def index(self) -> int:
        """The index of the next frame."""
        return self._index

    @property
    def body_hash(self) -> str:
        """SHA-256 of all content so far, in lowercase hex: what the receipt says."""
        return self._hash.hexdigest()

    def content(self, chunk: bytes, nonce: bytes) -> bytes:
        """The event of one chunk: what would stand behind ``data:`` in a plain stream."""
        if self._state:
            raise ValueError("content comes before the settlement")
        event = self._frame(b"event: zs\ndata: ", chunk, nonce)
        self._hash.update(chunk)
        return event

    def settle_group(self, group: bytes, nonce: bytes) -> bytes:
        """The event of what the settlement needs, before the receipt."""
        if self._state:
            raise ValueError("one settle group, before the receipt")
        self._state = 1
        exchange = self._exchange
        aad = header_aad(exchange.tx_id, exchange.ticket_id, SETTLE_GROUP)
        return _event(b"event: zs-settle-group\ndata: ", exchange.key, aad, nonce, b64(group).encode())

    def receipt(self, receipt: bytes, nonce: bytes) -> bytes:
        """The event of a receipt's JSON."""
        if self._state > 1:
            raise ValueError("one receipt, before the end")
        self._state = 2
        return self._frame(b"event: zs-receipt\ndata: ", receipt, nonce)

    def done(self) -> bytes:
        """The end of the stream."""
        self._state = 3
        return DONE_FRAME

    def _frame(self, head: bytes, plaintext: bytes, nonce: bytes) -> bytes:
        event = _event(head, self._exchange.key, self._prefix + _U64(self._index), nonce, plaintext)
        self._index += 1
        return event


def _event(head: bytes, key: bytes, aad: bytes, nonce: bytes, plaintext: bytes) -> bytes:
    # b2a_base64 ends its line; the second line end closes the event.
    return head + binascii.b2a_base64(seal_joined(key, aad, nonce, plaintext)) + b"\n"

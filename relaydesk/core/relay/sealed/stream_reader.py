"""A sealed answer as server-sent events: the side that reads it, without I/O (wire §4.7).

Whoever carries the stream can drop, repeat, reorder or alter events. Content opens only at its own index,
so each of these is a `Violation`; a lost end shows in a missing receipt or ``[DONE]``.

The wire binds a receipt's frame as it binds content, so a carrier may rename one to the other: a receipt so
taken for content is missed at the end, and content taken for a receipt is none. Nothing behind a terminal
chunk should be shown as an answer.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Final, Literal

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.sse import DONE, Event, SseParser
from relaydesk.core.relay.records.canonical import RecordError, unb64
from relaydesk.core.relay.sealed.aad import SETTLE_GROUP, frame_prefix, header_aad
from relaydesk.core.relay.sealed.box import Exchange, unseal_joined
from relaydesk.core.relay.sealed.envelope import SealedError
from relaydesk.core.relay.sealed.stream import CONTENT_EVENT, RECEIPT_EVENT, SETTLE_EVENT

# One event in base64. The last event of a Responses stream repeats the whole answer.
EVENT_LIMIT: Final = 4 * 1024 * 1024

Broken = Literal["altered", "order", "unsealed", "too_large", "cut"]

_U64 = struct.Struct(">Q").pack


@dataclass(frozen=True, slots=True)
class Content:
    """One chunk of the answer: what would stand behind ``data:`` in a plain stream."""

    data: bytes


@dataclass(frozen=True, slots=True)
class SettleGroup:
    """What the settlement needs, unread."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ReceiptFrame:
    """The receipt's JSON, unread."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Done:
    """``[DONE]``. Without a receipt before it the tail was cut off, or there is none."""

    receipt: bool


@dataclass(frozen=True, slots=True)
class Violation:
    """The stream broke a rule; it yields nothing after this.

    ``altered``: an event does not open at its place. ``order``: content or a second of its kind within the
    settlement. ``unsealed``: plain content. ``too_large``: an event without an end. ``cut``: no ``[DONE]``.
    """

    kind: Broken


StreamEvent = Content | SettleGroup | ReceiptFrame | Done | Violation


class StreamReader:
    """Turns the bytes of a sealed stream, cut anywhere, into its events. Never raises.

    At most one `Done` or `Violation` comes, and nothing after it. Keep reading until then, also past a
    terminal chunk: the receipt stands behind it.
    """

    __slots__ = ("_ended", "_exchange", "_group", "_hash", "_index", "_parser", "_prefix", "_receipt")

    def __init__(self, exchange: Exchange, limit: int = EVENT_LIMIT) -> None:
        self._exchange = exchange
        self._prefix = frame_prefix(exchange.tx_id, exchange.ticket_id)
        self._parser = SseParser(limit, limit)
        self._hash = hashlib.sha256()
        self._index = 0
        self._group = self._receipt = self._ended = False

    @property
    def index(self) -> int:
        """The index of the next frame: how many have been opened."""
        return self._index

    @property
    def ended(self) -> bool:
        """Whether `Done` or `Violation` has come."""
        return self._ended

    @property
    def body_hash(self) -> str:
        """SHA-256 of all content so far, in lowercase hex: what the receipt must say."""
        return self._hash.hexdigest()

    def feed(self, data: bytes) -> list[StreamEvent]:
        """The events that ``data`` completes."""
        if self._ended:
            return []
        try:
            parsed = self._parser.feed(data)
        except PeerError:
            return [self._break("too_large")]
        return self._read(parsed)

    def close(self) -> list[StreamEvent]:
        """What the end of the bytes means: a `Violation`, unless the stream had ended."""
        if self._ended:
            return []
        found = self._read(self._parser.close())
        return found if self._ended else [*found, self._break("cut")]

    def _read(self, parsed: list[Event]) -> list[StreamEvent]:
        found: list[StreamEvent] = []
        for event in parsed:
            read = self._one(event)
            if read is not None:
                found.append(read)
            if self._ended:
                break
        return found

    def _one(self, event: Event) -> StreamEvent | None:
        if event.type == CONTENT_EVENT:
            if self._group or self._receipt:
                return self._break("order")
            data = self._open(event.data)
            if data is None:
                return self._break("altered")
            self._hash.update(data)
            return Content(data)
        if event.type == RECEIPT_EVENT:
            if self._receipt:
                return self._break("order")
            data = self._open(event.data)
            if data is None:
                return self._break("altered")
            self._receipt = True
            return ReceiptFrame(data)
        if event.type == SETTLE_EVENT:
            return self._settle(event.data)
        if event.type in ("message", "error"):
            if event.data != DONE or event.type == "error":
                return self._break("unsealed")
            self._ended = True
            return Done(self._receipt)
        # A kind of event of a later version: it carries nothing we could deliver.
        return None

    def _settle(self, text: bytes) -> StreamEvent | None:
        """A settle group. One that does not open counts as absent, as the header does, but not as content."""
        if self._group:
            return self._break("order")
        self._group = True
        exchange = self._exchange
        aad = header_aad(exchange.tx_id, exchange.ticket_id, SETTLE_GROUP)
        try:
            inside = unseal_joined(exchange.key, aad, unb64(text, "the settle group"))
            return SettleGroup(unb64(inside, "the settle group"))
        except (RecordError, SealedError):
            return None

    def _open(self, text: bytes) -> bytes | None:
        """A frame at the next index, which advances only where it opens."""
        try:
            data = unb64(text, "the frame")
            opened = unseal_joined(self._exchange.key, self._prefix + _U64(self._index), data)
        except (RecordError, SealedError):
            return None
        self._index += 1
        return opened

    def _break(self, kind: Broken) -> Violation:
        self._ended = True
        return Violation(kind)

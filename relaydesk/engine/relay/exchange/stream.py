"""A sealed answer as the gateway reads one: its chunks in order, its receipt verified behind them.

What stands behind the chunk that ends an answer (the usage, in chats) is handed out once the receipt holds,
so that an answer that cannot be proved never ends well. Of content behind that chunk nothing is handed out.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from relaydesk.core.errors import Fault, as_peer_error
from relaydesk.core.relay.exchange.refused import sealed_fault
from relaydesk.core.relay.sealed.box import Exchange as Sealed
from relaydesk.core.relay.sealed.stream_reader import (
    Content,
    Done,
    ReceiptFrame,
    StreamEvent,
    StreamReader,
    Violation,
)
from relaydesk.core.relay.sealed.terminal import Api, terminal
from relaydesk.engine.relay.asking.answered import Answered
from relaydesk.engine.relay.exchange.bill import Bill
from relaydesk.engine.relay.outbound.outbound import UnreachableError

# From the chunk that ends an answer to ``[DONE]`` (wire §4.7).
TAIL_S: Final = 10.0
# More than this at once is opened in a thread.
ON_LOOP: Final = 64 * 1024
# How long a reader who has all of it waits for the books; they are closed behind its back after that.
_LINGER_S: Final = 1.0

Keep = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]

_SAID: Final = {
    "altered": "a part of it was altered, lost, repeated or moved on its way",
    "order": "its parts come in an order that cannot be",
    "unsealed": "a part of it is not sealed",
    "too_large": "a part of it has no end",
    "cut": "it ended early",
}


class _Usage(msgspec.Struct):
    choices: list[msgspec.Raw]
    usage: dict[str, msgspec.Raw]


_USAGE: Final = msgspec.json.Decoder(_Usage)


class SealedStream:
    """`EngineStream` over a sealed answer. ``keep`` runs what goes on after a reader has left.

    Iterating raises `PeerError`: ``operator_inconsistent_response`` where the answer or its receipt does not
    hold, ``upstream_unreachable`` where it broke off, or what a sealed error says.
    """

    status = 200
    headers: Mapping[str, str] = {}
    error_body = b""

    def __init__(self, answered: Answered, sealed: Sealed, bill: Bill, api: Api, keep: Keep) -> None:
        self._answered = answered
        self._reader = StreamReader(sealed)
        self._bill = bill
        self._api = api
        self._keep = keep
        self._pieces: AsyncIterator[bytes] = answered.chunks()
        self._ready: deque[bytes] = deque()
        self._held: list[bytes] = []
        self._pending = 0
        self._finished = False
        self._closed = False
        self._receipt: bytes | None = None
        self._error: Fault | None = None
        self._broken: Fault | None = None
        self._tail: asyncio.Task[None] | None = None

    def relax(self) -> None:
        """The target sends as it likes; nothing is gained by reading later."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not self._ready:
            if self._closed:
                if self._broken is not None:
                    raise as_peer_error(self._broken)
                raise StopAsyncIteration
            if self._finished:
                await asyncio.shield(self._settling())
            else:
                await self._read()
        return self._ready.popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Before the answer's end, break it off at once; after it, read on for the receipt."""
        if self._closed:
            return
        if self._finished:
            await asyncio.wait([self._settling()], timeout=_LINGER_S)
        else:
            await self._close(None)

    def _settling(self) -> asyncio.Task[None]:
        if self._tail is None:
            self._tail = self._keep(self._to_the_end())
        return self._tail

    async def _read(self) -> None:
        """One more piece of the answer, while it goes on."""
        try:
            piece = await anext(self._pieces, b"")
        except UnreachableError as error:
            await self._close(_broken_off(self._bill, error.reason))
            return
        except BaseException:
            await self._close(None)
            raise
        await self._take(piece)
        if self._reader.ended and not self._finished:
            # A stream without a chunk that ends it: what there is to settle with is here all the same.
            self._finished = True

    async def _take(self, piece: bytes) -> None:
        self._pending += len(piece)
        if not piece:
            events = self._reader.close()
        elif self._pending > ON_LOOP:
            events = await asyncio.to_thread(self._reader.feed, piece)
        else:
            events = self._reader.feed(piece)
        if events:
            self._pending = 0
        for event in events:
            self._one(event)

    def _one(self, event: StreamEvent) -> None:
        match event:
            case Content(data):
                self._content(data)
            case ReceiptFrame(data):
                self._receipt = data
            case Violation(kind):
                said = f"the answer of node {self._bill.reservation.ref} does not hold: {_SAID[kind]}"
                code = "upstream_unreachable" if kind == "cut" else "operator_inconsistent_response"
                self._broken = Fault(code, said, "send the request again")
                self._finished = True
            case Done():
                self._finished = True

    def _content(self, data: bytes) -> None:
        usage = _is_usage(data)
        if self._finished:
            if usage and not self._held:
                self._held.append(data)
            return
        found = terminal(data, self._api)
        if found.error:
            self._error = sealed_fault(self._bill.reservation.ref, 0, data)
            self._finished = True
        elif usage:
            self._held.append(data)
            self._finished = True
        else:
            self._ready.append(data)
            self._finished = found.terminal

    async def _to_the_end(self) -> None:
        """Read on to ``[DONE]``, settle, and be done."""
        try:
            await self._read_on()
            await self._settle()
        except BaseException:
            self._broken = _broken_off(self._bill, "this node is stopping")
            raise
        finally:
            await self._close(self._broken)

    async def _read_on(self) -> None:
        try:
            async with asyncio.timeout(TAIL_S):
                while not self._reader.ended:
                    await self._take(await anext(self._pieces, b""))
        except TimeoutError:
            self._broken = _broken_off(self._bill, "it had no end")
        except UnreachableError as error:
            self._broken = _broken_off(self._bill, error.reason)

    async def _settle(self) -> None:
        if self._broken is not None and self._receipt is None:
            self._broken = self._error or self._broken
            return
        wrong = await self._bill.settle(self._receipt, self._reader.body_hash, failed=self._error is not None)
        if self._error is not None:
            self._broken = self._error
        elif wrong:
            self._broken = self._broken or unproved(self._bill, wrong)
        elif self._broken is not None and self._broken.code == "upstream_unreachable":
            # Cut off behind the receipt: it proves that nothing of the answer is missing.
            self._broken = None
        if self._broken is None:
            self._ready.extend(self._held)

    async def _close(self, broken: Fault | None) -> None:
        self._closed = True
        self._broken = broken
        self._bill.unknown()
        await self._answered.aclose()


def _is_usage(data: bytes) -> bool:
    """Whether a chunk of a chat is the account behind it: no choices, and usage."""
    if b'"usage"' not in data:
        return False
    try:
        found = _USAGE.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return not found.choices


def unproved(bill: Bill, wrong: str) -> Fault:
    """The answer is whole, and its receipt is not what it must be."""
    return Fault(
        "operator_inconsistent_response",
        f"the receipt of node {bill.reservation.ref} does not hold ({wrong}): the answer is not proved",
        "send the request again",
    )


def _broken_off(bill: Bill, why: str) -> Fault:
    said = f"the answer of node {bill.reservation.ref} broke off ({why})"
    return Fault("upstream_unreachable", said, "send the request again")

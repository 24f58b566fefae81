"""A model of the relay network in an engine's place: what a run asks is an exchange for each choice.

Here the key's credit meets the network: what a ticket may cost is set aside before it is opened, and what
came of it is booked when its exchange has ended, whichever way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Final, Protocol, Self, TypeVar

from relaydesk.core.access.credit import Hold
from relaydesk.core.errors import Fault, PeerError, as_peer_error
from relaydesk.core.gateway.away import Offer
from relaydesk.core.gateway.network_faults import with_step
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.access.credits import Credits
from relaydesk.engine.gateway.journal import RequestRecord, Ticket
from relaydesk.engine.infer.engine import Engine, EngineReply, EngineStream
from relaydesk.engine.pool.slot_queue import SlotQueue
from relaydesk.engine.relay.exchange.request import NetworkRequest, Paid

T = TypeVar("T")

_ELSEWHERE: Final = "a model of the relay network answers conversations only"


class Market(Protocol):
    """What the network offers now."""

    def models(self) -> Sequence[Offer]: ...


class Network(Protocol):
    """The asking side of a relay network that is up. What `engine` gives is asked once."""

    @property
    def market(self) -> Market: ...
    def engine(self, request: NetworkRequest) -> Engine: ...


class KeyBill:
    """What one exchange costs its key: told by the exchange, booked once.

    A client that leaves does not end it: how much is owed may be told only after its request has ended.
    """

    def __init__(self, credits: Credits, key: str, record: RequestRecord) -> None:
        self._credits = credits
        self._key = key
        self._record = record
        self._held: tuple[Hold, Ticket] | None = None

    async def hold(self, target: NodeRef, most: int) -> None:
        """A ticket of this price is about to be opened. Raises `FaultError` where it must not be."""
        hold = await self._credits.hold(self._key, most)
        self._held = hold, self._record.opened(str(target), most)

    def paid(self, paid: Paid) -> None:
        """What came of the ticket."""
        if self._held is not None:
            hold, ticket = self._held
            ticket.relay, ticket.paid = str(paid.relay), paid.amount
            self._credits.settle(self._key, hold, paid.amount)


class NetworkEngine:
    """`Engine` that makes an exchange of each request. `end` breaks off those that run, with a reason."""

    def __init__(
        self, network: Network, model: str, hints: bytes, credits: Credits, key: str, record: RequestRecord
    ) -> None:
        self._network = network
        self._model = model
        self._hints = hints
        self._credits = credits
        self._key = key
        self._record = record
        self._scopes: set[asyncio.Timeout] = set()
        self._ended: Fault | None = None

    def end(self, fault: Fault) -> None:
        """The node stops: what runs ends with ``fault``, and so does whatever is asked from now on."""
        self._ended = fault
        for scope in self._scopes:
            scope.reschedule(0)

    async def running(self, work: Callable[[], Awaitable[T]]) -> T:
        """What ``work`` brings. Raises `FaultError`, with its next step, and why all was ended."""
        try:
            async with asyncio.timeout(None if self._ended is None else 0) as scope:
                self._scopes.add(scope)
                try:
                    return await work()
                finally:
                    self._scopes.discard(scope)
        except PeerError as error:
            raise as_peer_error(with_step(error.fault)) from error
        except TimeoutError:
            if self._ended is None:
                raise
            raise as_peer_error(self._ended) from None

    async def stream(self, path: str, body: bytes, *, ends_with_done: bool = True) -> EngineStream:
        bill = KeyBill(self._credits, self._key, self._record)
        standing = self._credits.standing(self._key)
        request = NetworkRequest(
            model=self._model,
            hints=self._hints,
            # What is set aside for others may come back: `hold` decides that.
            credit_left=max(0, standing.limit - standing.spent),
            on_paid=bill.paid,
            hold=bill.hold,
        )
        asked = self._network.engine(request)
        return _Stream(self, await self.running(lambda: asked.stream(path, body)))

    async def json(self, method: str, path: str, body: bytes | None = None) -> EngineReply:
        raise PeerError("unsupported", _ELSEWHERE)

    async def health(self) -> bool:
        return True

    async def aclose(self) -> None:
        """Nothing of it is held."""


class NetworkLease:
    """`Held` for one request: its choices do not wait for each other, and hold nobody else up."""

    extensions: Final = False
    fault: Final[Fault | None] = None

    def __init__(self, engine: NetworkEngine, model: str, choices: int) -> None:
        self.engine = engine
        self.alias = model
        self.slots = SlotQueue(max(choices, 1), lambda: choices, lambda: None)

    async def why(self, fault: Fault) -> Fault:
        """What an exchange says is all there is to know."""
        return fault


@asynccontextmanager
async def network_lease(
    engine: NetworkEngine, model: str, choices: int, record: RequestRecord, held: set[NetworkEngine]
) -> AsyncIterator[NetworkLease]:
    """Hold the model for one request; there is nothing to load. ``held`` has the engine meanwhile."""
    record.loaded()
    held.add(engine)
    try:
        yield NetworkLease(engine, model, choices)
    finally:
        held.discard(engine)


class _Stream:
    """An exchange's answer; what goes wrong in it is said with the next step."""

    def __init__(self, engine: NetworkEngine, stream: EngineStream) -> None:
        self._engine = engine
        self._stream = stream

    @property
    def status(self) -> int:
        return self._stream.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._stream.headers

    @property
    def error_body(self) -> bytes:
        return self._stream.error_body

    def relax(self) -> None:
        self._stream.relax()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        return await self._engine.running(self._stream.__anext__)

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stream.__aexit__(kind, value, trace)

    async def aclose(self) -> None:
        await self._stream.aclose()

"""The whole exchange (wire §0): a target for a request, a ticket, its payment, and a sealed answer.

Nothing of a prompt leaves but sealed to one target, through a relay of another operator. Before a ticket is
opened everything may be tried again, within a minute; after it only what provably reached nobody (§2.5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from relaydesk.core.errors import PeerError, as_peer_error
from relaydesk.core.ports import Age, Clock
from relaydesk.core.relay.exchange.again import Again
from relaydesk.core.relay.exchange.demand import Demand, demand_of
from relaydesk.core.relay.exchange.nobody import Passed, unselected, unserved
from relaydesk.core.relay.prepare import PREFIX
from relaydesk.core.relay.schedule import OVERALL_MS
from relaydesk.core.relay.sealed.box import Exchange as Sealed
from relaydesk.core.relay.sealed.stream import STREAM_TYPE
from relaydesk.core.relay.target.candidate import Candidate
from relaydesk.core.relay.target.constraints import Constraints
from relaydesk.core.relay.target.hints import Hints, parse_hints
from relaydesk.core.relay.target.response_time import by_response_time
from relaydesk.core.relay.target.selection import select_targets
from relaydesk.engine.infer.engine import Engine
from relaydesk.engine.ledger.purse import Purse
from relaydesk.engine.relay.asking.answered import Answered
from relaydesk.engine.relay.asking.asker import Asker
from relaydesk.engine.relay.exchange.bill import Bill
from relaydesk.engine.relay.exchange.engine import ExchangeEngine
from relaydesk.engine.relay.exchange.market import Market
from relaydesk.engine.relay.exchange.paid_ask import PaidAsk, Sleep
from relaydesk.engine.relay.exchange.passed_over import PassedOver
from relaydesk.engine.relay.exchange.request import NetworkRequest, Paid
from relaydesk.engine.relay.exchange.reserve import Reservation, Reserver
from relaydesk.engine.relay.exchange.stream import ON_LOOP, TAIL_S, SealedStream
from relaydesk.engine.relay.exchange.timings import Timings
from relaydesk.engine.relay.exchange.whole import read_whole
from relaydesk.engine.tasks import cancel_and_wait, spawn


def no_fee() -> int:
    """The network's fee where nobody takes one."""
    return 0


class Exchange:
    """Asks the network. Make it inside the loop; `aclose` before the purse's database is closed.

    ``market`` says what there is to ask for.
    """

    def __init__(
        self,
        asker: Asker,
        purse: Purse,
        age: Age,
        clock: Clock,
        *,
        fee_bps: Callable[[], int] = no_fee,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.market = Market(asker.peers, asker.choice, clock)
        self._purse = purse
        self._clock = clock
        self._fee_bps = fee_bps
        self._sleep = sleep
        self._timings = Timings()
        self._reserver = Reserver(asker, self.market, purse, age, clock, fee_bps)
        self._paid = PaidAsk(asker, age, sleep)
        self._tails: set[asyncio.Task[None]] = set()

    def engine(self, request: NetworkRequest) -> Engine:
        """An engine for one request: what it is asked goes through the network."""
        return ExchangeEngine(self, request)

    async def stream(self, request: NetworkRequest, path: str, body: bytes) -> SealedStream:
        """A streamed exchange whose answer has begun. Raises `PeerError`, `EnvError`."""
        demand = await _read(request, path, body)
        if not demand.stream:
            raise ValueError("the body does not ask for a stream")
        answered, sealed, bill = await self._asked(request, demand)
        return SealedStream(answered, sealed, bill, demand.api, self._keep)

    async def whole(self, request: NetworkRequest, path: str, body: bytes) -> bytes:
        """A whole exchange, the answer at once. Raises `PeerError`, `EnvError`."""
        demand = await _read(request, path, body)
        if demand.stream:
            raise ValueError("the body asks for a stream")
        answered, sealed, bill = await self._asked(request, demand)
        try:
            return await read_whole(answered, sealed, bill)
        finally:
            bill.unknown()

    async def aclose(self) -> None:
        """Let answers that nobody reads any more settle, for as long as they may; then end them."""
        if self._tails:
            await asyncio.wait(self._tails, timeout=TAIL_S)
        for task in tuple(self._tails):
            await cancel_and_wait(task)

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = spawn(work, name="settling")
        self._tails.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tails.discard(task)

    async def _asked(self, request: NetworkRequest, demand: Demand) -> tuple[Answered, Sealed, Bill]:
        """Reserve, open, ask."""
        held = await self._reserve(demand, parse(request.hints or demand.hints), request.credit_left)
        ticket = held.ticket
        await request.hold(held.ref, ticket.max_price)
        try:
            paid = await self._purse.open_(
                held.ref, ticket.ticket_id, ticket.model, ticket.max_price, ticket.expires_at
            )
        except BaseException:
            # The target has seen nothing of it.
            request.on_paid(Paid(held.relay, held.ref, ticket.max_price, 0, False))
            raise
        bill = Bill(held, paid, self._purse, self._timings, request.on_paid, self._fee_bps())
        try:
            answered, sealed = await self._paid.ask(demand, bill)
        except BaseException:
            bill.unknown()
            raise
        if demand.stream != _streams(answered):
            failed = not 200 <= answered.status < 300
            await self._other_kind(answered, sealed, bill, failed=failed)
        return answered, sealed, bill

    async def _other_kind(self, answered: Answered, sealed: Sealed, bill: Bill, *, failed: bool) -> None:
        """An error may come whole though a stream was asked for; nothing else may."""
        try:
            if failed and not _streams(answered):
                await read_whole(answered, sealed, bill)
        finally:
            bill.unknown()
            await answered.aclose()
        said = f"the answer of node {bill.reservation.ref} is not of the kind that was asked for"
        raise PeerError("operator_inconsistent_response", said, "send the request again")

    async def _reserve(self, demand: Demand, hints: Hints, credit_left: int | None) -> Reservation:
        """A ticket of the best target that gives one, by the schedule of wire §2.5."""
        constraints = Constraints(
            demand.model,
            demand.bounds.v1,
            demand.bounds.v2,
            demand.max_output,
            endpoint=demand.path,
            requested_tools=demand.tools,
            hints=hints,
        )
        chosen = select_targets(self.market.candidates(), constraints)
        if not chosen.nodes:
            raise as_peer_error(unselected(chosen, constraints, self.market.known(demand.model)))
        chosen = by_response_time(chosen, self._timings.of(demand.model, hints.sort))
        nodes, again = chosen.nodes, Again()
        end = self._clock.mono() + OVERALL_MS / 1000
        while True:
            found, passed = await self._sweep(nodes, demand, constraints, credit_left, end)
            if found is not None:
                return found
            then = again.after(passed, round((end - self._clock.mono()) * 1000))
            if then is None:
                raise as_peer_error(unserved(again.passed))
            await self._sleep(then.delay_ms / 1000)
            nodes = tuple(each for each in chosen.nodes if each.ref in then.refs)

    async def _sweep(
        self,
        nodes: tuple[Candidate, ...],
        demand: Demand,
        constraints: Constraints,
        credit_left: int | None,
        end: float,
    ) -> tuple[Reservation | None, list[Passed]]:
        passed: list[Passed] = []
        for candidate in nodes:
            left = end - self._clock.mono()
            if passed and left <= 0:
                break
            try:
                found = await self._reserver.reserve(candidate, demand, constraints, credit_left, left)
                return found, passed
            except PassedOver as over:
                passed.append(over.passed)
        return None, passed


async def _read(request: NetworkRequest, path: str, body: bytes) -> Demand:
    if len(body) > ON_LOOP:
        demand = await asyncio.to_thread(demand_of, path, body)
    else:
        demand = demand_of(path, body)
    if demand.model != request.model.removeprefix(PREFIX):
        raise ValueError("the body names another model than the request")
    return demand


def parse(provider: bytes) -> Hints:
    """The routing hints of a request. What cannot be read is refused: it would be answered otherwise.

    Raises `PeerError` ``invalid_request``, ``param`` naming the field.
    """
    hints = parse_hints(provider)
    if hints.unread:
        raise PeerError(
            "invalid_request",
            f"{hints.unread[0]} is not what it must be",
            "correct it or leave it out",
            param=hints.unread[0],
        )
    if hints.relay == "off":
        raise PeerError(
            "invalid_request",
            "a model of the network is never asked but through a relay",
            "leave provider.relay out, or ask a model of this hub",
            param="provider.relay",
        )
    return hints


def _streams(answered: Answered) -> bool:
    kind = answered.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    return kind == STREAM_TYPE

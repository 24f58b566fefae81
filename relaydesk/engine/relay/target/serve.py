"""Answering a request that was paid for: through the gateway, sealed, with a receipt (wire §4.7, §4.8)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol

from relaydesk.core.access.caller import Caller
from relaydesk.core.errors import Fault, FaultError
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.core.gateway.work import Plan
from relaydesk.core.ledger.port import Ledger
from relaydesk.core.ports import Age, Clock, Rng
from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.records.receipt import Receipt, encode_receipt
from relaydesk.core.relay.sealed.body import seal_body
from relaydesk.core.relay.sealed.box import NONCE_SIZE, Exchange
from relaydesk.core.relay.sealed.headers import RECEIPT_HEADER, seal_receipt
from relaydesk.core.relay.sealed.response_key import RESPONSE_KEY_HEADER, wrap_key
from relaydesk.core.relay.sealed.stream import Sealer
from relaydesk.engine.gateway.run import Run, Stranger
from relaydesk.engine.relay.identity import Identity
from relaydesk.engine.relay.target.body_check import BodyCheck
from relaydesk.engine.relay.target.chunks import chunks_of
from relaydesk.engine.relay.target.faults import SealedFault, of_gateway, of_wire
from relaydesk.engine.relay.target.inference import Admitted
from relaydesk.engine.relay.target.offers import Offers
from relaydesk.engine.relay.target.receipts import Measured, book, receipt_of
from relaydesk.engine.tasks import finished

_log: Final = logging.getLogger(__name__)

# How long a stranger waits for his slot (design §6).
WAIT_S: Final = 5.0
# How long an answer may take: its receipt must be in the ledger before the ticket's deadline, which is at
# least the grace (600 s) after the request.
RUN_S: Final = 540.0
# Who strangers are in records of requests: never which of them.
STRANGER: Final = Caller("network", "network")

_INTERNAL: Final = Fault("internal_error", "relaydesk failed on this request")
_TOO_LONG: Final = Fault("engine_failed", "the answer took too long")


class Strangers(Protocol):
    """The part of the gateway that serves the network."""

    def open_stranger(
        self,
        body: bytes,
        plan_of: Callable[[bytes], Plan],
        incoming: Incoming,
        *,
        model: str,
        limit: int,
        stranger: Stranger,
    ) -> Run: ...


@dataclass(frozen=True, slots=True)
class Means:
    """What every answer is made with. ``offers`` says how many strangers may hold a slot."""

    identity: Identity
    age: Age
    ledger: Ledger
    gateway: Callable[[], Strangers]
    offers: Offers
    clock: Clock
    rng: Rng


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer that is not streamed: sealed headers, and the sealed body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Answering:
    """One answer. Use `frames` or `whole`, once; `close` at the end, whatever happened.

    ``began`` is when the request was there (mono). An answer that fails, at whatever point, costs nothing. A
    stream whose reader leaves costs what was made until then, an answer that was to come whole nothing.
    """

    def __init__(
        self,
        means: Means,
        admitted: Admitted,
        checked: BodyCheck,
        plan_of: Callable[[bytes], Plan],
        route: str,
        began: float,
    ) -> None:
        self.stream = checked.stream
        self._means = means
        self._admitted = admitted
        self._checked = checked
        self._plan_of = plan_of
        self._route = route
        self._began = began
        self._first: float | None = None
        held = admitted.held
        self._exchange = Exchange(held.key, admitted.tx_id, held.ticket.ticket_id)
        self._sealer = Sealer(self._exchange)
        self._run: Run | None = None
        self._booked = False

    def headers(self) -> dict[str, str]:
        """What stands before every sealed answer: the response key, wrapped."""
        held = self._admitted.held
        return {RESPONSE_KEY_HEADER: wrap_key(self._means.age, held.key, held.recipient)}

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """The sealed events, to ``[DONE]``. Raises nothing of its own."""
        nonce, content = self._means.rng.token_bytes, self._sealer.content
        fault: SealedFault | None = None
        try:
            run = self._open()
            async with aclosing(run.frames()) as frames:
                while (frame := await self._next(frames)) is not None:
                    chunks = chunks_of(frame)
                    if chunks:
                        yield b"".join([content(chunk, nonce(NONCE_SIZE)) for chunk in chunks])
        except Exception as error:
            fault = _sealed_fault(error)
        if fault is not None:
            yield content(fault.body, nonce(NONCE_SIZE))
        receipt = await self._receipt(self._sealer.body_hash, free=fault is not None)
        sealed = self._sealer.receipt(encode_receipt(receipt), nonce(NONCE_SIZE))
        yield sealed + self._sealer.done()

    async def whole(self) -> Whole:
        """The sealed body with its headers. Raises nothing of its own."""
        status, fault = 200, None
        try:
            run = self._open()
            async with asyncio.timeout(RUN_S):
                body = await run.whole()
        except Exception as error:
            fault = _sealed_fault(error)
            status, body = fault.status, fault.body
        receipt = await self._receipt(hashlib.sha256(body).hexdigest(), free=fault is not None)
        nonce = self._means.rng.token_bytes
        sealed = seal_receipt(self._exchange, encode_receipt(receipt), nonce(NONCE_SIZE))
        headers = {**self.headers(), RECEIPT_HEADER: sealed}
        return Whole(status, headers, seal_body(self._exchange, body, nonce(NONCE_SIZE)))

    async def close(self) -> None:
        """Book what was made for a reader who has left; does nothing where the receipt is there."""
        if self._booked:
            return
        # Of an answer that was not streamed he has nothing, and its hash would be of nothing he knows.
        await self._receipt(self._sealer.body_hash, free=not self.stream)

    def _open(self) -> Run:
        if self._checked.refusal is not None:
            raise self._checked.refusal
        means, ticket = self._means, self._admitted.held.ticket
        offer = means.offers.find(ticket.model)
        if offer is None:
            raise WireError("provider_overloaded", "the model is not served any more: try another node")
        self._run = means.gateway().open_stranger(
            self._admitted.body,
            self._plan_of,
            Incoming(STRANGER, self._route, means.rng.token_bytes(8).hex()),
            model=ticket.model,
            limit=ticket.max_output_count,
            stranger=Stranger(offer.most, WAIT_S),
        )
        return self._run

    async def _next(self, frames: AsyncGenerator[bytes, None]) -> bytes | None:
        left = self._began + RUN_S - self._means.clock.mono()
        if self._first is not None and left > 0:
            return await anext(frames, None)
        async with asyncio.timeout(max(left, 0.0)):
            frame = await anext(frames, None)
        if self._first is None:
            self._first = self._means.clock.mono()
        return frame

    async def _receipt(self, body_hash: str, *, free: bool) -> Receipt:
        """The receipt, booked once, even where whoever waits for it is cancelled meanwhile."""
        measured = Measured(ttft_ms=self._since()) if free or self._run is None else self._measured(self._run)
        admitted = self._admitted
        receipt = receipt_of(admitted.held.ticket, measured, body_hash, self._means.identity.seed)
        self._booked = True
        await finished(book(self._means.ledger, admitted.ledger_tx, receipt))
        return receipt

    def _measured(self, run: Run) -> Measured:
        record = run.record
        first = self._first if run.exact else None
        total = self._since()
        ttft = total if first is None else round((first - self._began) * 1000)
        return Measured(
            record.prompt_tokens,
            record.completion_tokens,
            record.cached_tokens,
            ttft_ms=ttft,
            decode_ms=total - ttft,
        )

    def _since(self) -> int:
        return round((self._means.clock.mono() - self._began) * 1000)


def _sealed_fault(error: Exception) -> SealedFault:
    """What is said of a failure; one of ours without its text, which may hold what was asked."""
    if isinstance(error, WireError):
        return of_wire(error)
    if isinstance(error, FaultError):
        return of_gateway(error.fault)
    if isinstance(error, TimeoutError):
        return of_gateway(_TOO_LONG)
    _log.error("a request of the network failed inside relaydesk: %s", type(error).__name__)
    return of_gateway(_INTERNAL)

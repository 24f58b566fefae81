"""The target, put together: reserves, requests, questions about the ledger, and going down (wire §1.3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from relaydesk.core.errors import EnvError
from relaydesk.core.gateway.chat import chat_plan
from relaydesk.core.gateway.responses.plan import responses_plan
from relaydesk.core.gateway.work import Plan
from relaydesk.core.ledger.port import Ledger
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.ports import Age, Clock, Rng
from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.sealed.envelope import SealedError, seal_envelope
from relaydesk.engine.pool.pool import Pool
from relaydesk.engine.relay.ephemerals import Ephemerals
from relaydesk.engine.relay.identity import Identity
from relaydesk.engine.relay.target.body_check import check_body
from relaydesk.engine.relay.target.inference import Admitted, InferenceDesk
from relaydesk.engine.relay.target.offers import Offers
from relaydesk.engine.relay.target.opening import Opening
from relaydesk.engine.relay.target.reserve import ReserveDesk
from relaydesk.engine.relay.target.serve import Answering, Means, Strangers
from relaydesk.engine.relay.target.tickets import Tickets

# How long a ticket that was issued is honoured while the node goes down.
DRAIN_GRACE_S: Final = 10.0
# The most of a sealed request: images and all (§8.4: the wire names no figure).
INFERENCE_LIMIT: Final = 12 * 1_048_576
LEDGER_LIMIT: Final = 64 * 1024
# How often it is looked whether all tickets have come while the node goes down.
_LOOK_S: Final = 0.05

# The routes that are served, by the names that records of requests have for them.
ROUTES: Final[Mapping[str, Callable[[bytes], Plan]]] = {
    "/v1/chat/completions": chat_plan,
    "/v1/responses": responses_plan,
}


class _Question(msgspec.Struct):
    reply_to: str = ""


class Target:
    """This node as a target. Make it inside the loop."""

    def __init__(
        self,
        identity: Identity,
        age: Age,
        keys: Ephemerals,
        ledger: Ledger,
        pool: Pool,
        gateway: Callable[[], Strangers],
        clock: Clock,
        rng: Rng,
        *,
        share: Callable[[], int | None],
        draining: Callable[[], bool],
    ) -> None:
        self.offers = Offers(pool, share, draining)
        self.tickets = Tickets(clock)
        self._age = age
        self._ledger = ledger
        self._clock = clock
        self._draining = draining
        self._drain_began: float | None = None
        self._opening = Opening(keys)
        self._reserves = ReserveDesk(
            identity, age, self._opening, self.offers, self.tickets, ledger, clock, rng, draining
        )
        self._requests = InferenceDesk(self._opening, self.tickets, ledger, self._drained)
        self._means = Means(identity, age, ledger, gateway, self.offers, clock, rng)

    async def reserve(self, body: bytes) -> bytes:
        """The sealed answer to a sealed reserve. Raises `WireError`, to be said unsealed."""
        return await self._reserves.answer(body)

    @asynccontextmanager
    async def answering(self, path: str, body: bytes, *, event_stream: bool) -> AsyncIterator[Answering]:
        """The answer to a sealed request on ``path``, one of `ROUTES`; afterwards its ticket is given back.

        ``event_stream``: what ``Accept`` says. Raises `WireError` before the seal.
        """
        began = self._clock.mono()
        admitted = await self._requests.admit(body, INFERENCE_LIMIT)
        answering: Answering | None = None
        try:
            answering = await self._answering(admitted, path, event_stream, began)
            yield answering
        finally:
            try:
                if answering is not None:
                    await answering.close()
            finally:
                self.tickets.release(admitted.held)

    async def _answering(self, admitted: Admitted, path: str, event_stream: bool, began: float) -> Answering:
        held, body = admitted.held, admitted.body
        checked = await self._opening.off_loop(
            len(body), lambda: check_body(body, held, event_stream=event_stream)
        )
        return Answering(self._means, admitted, checked, ROUTES[path], path, began)

    async def ledger(self, body: bytes) -> bytes:
        """The sealed answer to a sealed question about an account, at a path of ours. Raises `WireError`."""
        try:
            question = await self._opening.open(body, LEDGER_LIMIT)
            reply_to = msgspec.json.decode(question, type=_Question).reply_to
            answer = await self._ledger.answer(question)
            return await self._opening.off_loop(
                len(answer), lambda: seal_envelope(self._age, answer, reply_to)
            )
        except SealedError as error:
            raise WireError("bad_envelope", str(error)) from None
        except LedgerRefusal as refusal:
            raise WireError("bad_request", str(refusal)) from None
        except EnvError:
            raise WireError("provider_unavailable", "this node's books cannot be read now") from None
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise WireError("bad_request", "the question is no JSON with a reply_to to answer to") from None

    async def tickets_over(self) -> None:
        """While the node goes down: return once every ticket has come, or has had time to.

        Requests that were let in are waited for too.
        """
        while True:
            if (not self.tickets.waiting or self._drained()) and not self.tickets.spent:
                return
            await asyncio.sleep(_LOOK_S)

    def _drained(self) -> bool:
        """Whether tickets are honoured no longer."""
        if not self._draining():
            self._drain_began = None
            return False
        if self._drain_began is None:
            self._drain_began = self._clock.mono()
        return self._clock.mono() >= self._drain_began + DRAIN_GRACE_S

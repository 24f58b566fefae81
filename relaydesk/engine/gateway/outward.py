"""From a checked request that names a model of the relay network to a run of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.gateway.away import (
    NETWORK,
    PREFIX,
    check_may,
    check_tee,
    network_id,
    offered,
    relay_use,
    routing_hints,
)
from relaydesk.core.gateway.decode import unsupported
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.core.gateway.models import ModelName
from relaydesk.core.gateway.output import Identity
from relaydesk.core.gateway.work import Capabilities, Plan, Work
from relaydesk.core.relay.bound.reserve_count import derive_max_output
from relaydesk.core.relay.exchange.demand import PATHS
from relaydesk.engine.access.quotas import Quotas
from relaydesk.engine.gateway.books import Books
from relaydesk.engine.gateway.journal import RequestRecord
from relaydesk.engine.gateway.network_lease import Network, NetworkEngine
from relaydesk.engine.gateway.network_run import NetworkRun
from relaydesk.engine.pool.pool import Pool

# Of what others serve everything is believed, as of a far server: it refuses what it cannot do.
CAPABILITIES: Final = Capabilities(tools=True, images=True, thinking=True)


class Outgoing(msgspec.Struct, frozen=True):
    """A request that may go: the network's ``model``, what is known of it, and the client's routing hints.

    ``window`` is the longest context that anybody declares, 0 for none; ``most`` the tokens that one choice
    has where the client states no limit.
    """

    model: str
    network: Network
    work: Work
    hints: bytes
    window: int
    most: int

    @property
    def name(self) -> str:
        """What it is called here."""
        return PREFIX + self.model


class Outward:
    """Requests for models of the relay network. ``network`` is None while it is not up."""

    def __init__(self, network: Callable[[], Network | None], quotas: Quotas, pool: Pool) -> None:
        self._network = network
        self._quotas = quotas
        self._pool = pool
        self._held: set[NetworkEngine] = set()

    def refuse_all(self, fault: Fault) -> None:
        """The node stops: answers that are on their way end with ``fault``."""
        for engine in tuple(self._held):
            engine.end(fault)

    def wanted(self, requested: str | None, incoming: Incoming, known: Sequence[ModelName]) -> str | None:
        """The network's id of the model asked for, None where the request stays here. Raises `PeerError`."""
        check_tee(incoming.tee)
        return network_id(requested, relay_use(incoming.relay), known)

    def check_here(self, requested: str | None, incoming: Incoming, known: Sequence[ModelName]) -> None:
        """Refuse what the network has no route for. Raises `PeerError`."""
        if (model := self.wanted(requested, incoming, known)) is not None:
            check_may(incoming.caller, model)
            raise unsupported(
                "model",
                f"the relay network has no {incoming.route}",
                "it answers conversations; name a model of this hub",
            )

    def checked(
        self, plan: Plan, body: bytes, incoming: Incoming, known: Sequence[ModelName]
    ) -> Outgoing | None:
        """A request for the network, with everything checked that can be before anybody is asked.

        None where the request stays here. Raises `PeerError`.
        """
        model = self.wanted(plan.work.model, incoming, known)
        if model is None:
            return None
        check_may(incoming.caller, model)
        network = self._network()
        if network is None:
            raise PeerError(
                "no_operator",
                "the relay network is off on this hub",
                "its operator turns it on with RELAY_NETWORK=on",
            )
        work = plan.work
        if work.choices and work.path not in PATHS:
            raise unsupported(
                "model",
                f"the relay network has no {work.path}",
                "ask /v1/chat/completions, or name a model of this hub",
            )
        hints = routing_hints(body)
        offer = offered(model, network.market.models())
        window, declared = (offer.context_window, offer.max_output) if offer is not None else (0, 0)
        most = derive_max_output(window, declared)
        found = offer.id if offer is not None else model
        return Outgoing(found, network, work.fitted(CAPABILITIES), hints, window, most)

    async def run(
        self, going: Outgoing, plan: Plan, incoming: Incoming, record: RequestRecord, identity: Identity
    ) -> NetworkRun:
        """Have the key granted it. Raises `FaultError`, with nothing set aside."""
        record.placement = NETWORK
        caller, work = incoming.caller, going.work
        books = await Books.open(self._quotas, caller, work, CAPABILITIES, going.most)
        engine = NetworkEngine(
            going.network, going.model, going.hints, self._quotas.credits, caller.id, record
        )
        return NetworkRun(
            books,
            plan.output(identity),
            self._pool,
            record,
            engine,
            self._held,
            model=going.model,
            most=books.work.limit or going.most,
            call_prefix=f"call_{identity.token}",
        )

"""The routes of a target, and how often one address may use each.

The address is usually a relay's, so this is no limit for one payer: it bounds what the keys, the books and
their file take from anywhere (design §6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aiohttp import web

from relaydesk.core.ports import Clock
from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.hop import LEDGER_PATH, RESERVE_PATH
from relaydesk.core.tls.names import Network
from relaydesk.engine.relay.relaying.clients import Clients, Rate
from relaydesk.engine.relay.target.desk import ROUTES, Target
from relaydesk.surfaces.network.asked import Asked, address_of
from relaydesk.surfaces.network.inference import inference
from relaydesk.surfaces.network.ledger import ledger
from relaydesk.surfaces.network.reserve import reserve
from relaydesk.surfaces.network.state import Handler, Route


class Rates:
    """``per_minute`` is asked when it matters; ``proxies`` are trusted to name the client."""

    def __init__(
        self,
        clients: Clients,
        clock: Clock,
        per_minute: Callable[[], int],
        proxies: Sequence[Network] = (),
    ) -> None:
        self._clients = clients
        self._clock = clock
        self._per_minute = per_minute
        self._proxies = proxies

    def limited(self, handler: Handler, code: str) -> Handler:
        """The same handler with buckets of its own; what is over gets ``code`` before it is read."""
        rate = Rate(self._clock)

        async def answer(asked: Asked) -> web.StreamResponse:
            client = self._clients.name(address_of(asked, self._proxies))
            wait = rate.take(client, self._per_minute())
            if wait:
                raise WireError(code, "too many requests from one address", retry_after=wait)
            return await handler(asked)

        return answer


def serving(target: Target, heartbeat_s: Callable[[], float], rates: Rates) -> tuple[Route, ...]:
    """The routes. A ticket's request has buckets apart from reserves: who reserved may always ask once."""
    answer = rates.limited(inference(target, heartbeat_s), "provider_unavailable")
    return (
        Route("POST", RESERVE_PATH, rates.limited(reserve(target), "no_capacity")),
        Route("POST", LEDGER_PATH, rates.limited(ledger(target), "provider_unavailable")),
        *(Route("POST", path, answer) for path in ROUTES),
    )

"""What the public application is given: one record, reached by a typed key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from relaydesk.core.access.caller import Caller
from relaydesk.core.access.exposure import Exposure
from relaydesk.core.access.proxies import Client
from relaydesk.core.gateway.away import Offer
from relaydesk.core.gateway.ollama.facts import Facts
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.view.sections import ModelsView
from relaydesk.engine.access.keys import Authenticator
from relaydesk.engine.gateway.service import Gateway


@dataclass(frozen=True, slots=True)
class Hub:
    """The parts of a node that the public routes use.

    ``accepting`` is false while the node starts or drains; ``heartbeat_s`` is the longest silence on a
    stream; ``max_body`` bytes is the largest request body; ``facts`` are a registered model's, by its name;
    ``offers`` are the models of the relay network.
    """

    gateway: Gateway
    models: Callable[[], ModelsView]
    facts: Callable[[str], Facts]
    authenticator: Authenticator
    accepting: Callable[[], bool]
    clock: Clock
    rng: Rng
    heartbeat_s: Callable[[], float]
    max_body: int
    exposure: Exposure = field(default_factory=Exposure)
    offers: Callable[[], Sequence[Offer]] = tuple


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


HUB: Final = web.AppKey("hub", Hub)
CALLER: Final = web.RequestKey("caller", Caller)
REQUEST_ID: Final = web.RequestKey("request_id", str)
CLIENT: Final = web.RequestKey("client", Client)

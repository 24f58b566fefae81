"""What the public application is given: one record, reached by a typed key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from relaydesk.core.ports import Clock, Rng
from relaydesk.core.view.sections import ModelsView
from relaydesk.engine.access.keys import Authenticator
from relaydesk.engine.gateway.service import Gateway


@dataclass(frozen=True, slots=True)
class Hub:
    """The parts of a node that the public routes use.

    ``accepting`` is false while the node starts or drains; ``heartbeat_s`` is the longest silence on a
    stream; ``max_body`` bytes is the largest request body.
    """

    gateway: Gateway
    models: Callable[[], ModelsView]
    authenticator: Authenticator
    accepting: Callable[[], bool]
    clock: Clock
    rng: Rng
    heartbeat_s: Callable[[], float]
    max_body: int


HUB: Final = web.AppKey("hub", Hub)
KEY_NAME: Final = web.RequestKey("key_name", str)
REQUEST_ID: Final = web.RequestKey("request_id", str)

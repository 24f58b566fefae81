"""What the network listener is given, and what a route of it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from relaydesk.core.ports import Clock
from relaydesk.core.tls.names import Network as IpNetwork
from relaydesk.engine.relay.relaying.forward import Forwarder
from relaydesk.surfaces.network.asked import Asked

MIB: Final = 1_048_576

Handler = Callable[[Asked], Awaitable[web.StreamResponse]]
"""Answers one request. What it raises as `WireError` is answered by the wire's catalogue."""


@dataclass(frozen=True, slots=True)
class Route:
    """``path`` may end in ``/{…}``: one more segment, which the handler finds as ``asked.rest``."""

    method: str
    path: str
    handler: Handler


@dataclass(frozen=True, slots=True)
class Limits:
    """``max_body`` bytes of one request; ``stall_s`` seconds for which a client may take nothing of its
    answer; ``connections`` open at once, of which one address has a quarter; ``turned_away`` beyond them that
    are told so, at once."""

    max_body: int = 12 * MIB
    stall_s: float = 600.0
    connections: int = 2048
    turned_away: int = 256


def _unprobed(_asked: Asked) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Network:
    """The parts of a node that the network listener uses.

    ``routes`` are those beside the relay and the health check: each is one line here. ``prefix`` is the path
    of the public URL, which a proxy may leave on; ``proxies`` are trusted to name the client. ``probed``
    answers probes of this node's own edge, at the relay's route; ``left`` is told when something of a request
    was let go.
    """

    forwarder: Forwarder
    clock: Clock
    routes: Sequence[Route] = ()
    draining: Callable[[], bool] = lambda: False
    prefix: str = ""
    proxies: Sequence[IpNetwork] = ()
    limits: Limits = field(default_factory=Limits)
    probed: Callable[[Asked], Awaitable[web.StreamResponse] | None] = _unprobed
    left: Callable[[], None] = lambda: None

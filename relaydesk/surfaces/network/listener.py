"""The network listener of a node: its routes out of the node's parts."""

from __future__ import annotations

import ipaddress
from dataclasses import replace
from urllib.parse import urlsplit

from relaydesk.config.model import Settings
from relaydesk.core.hopcheck.dialback import PATH as DIALBACK_PATH
from relaydesk.core.ports import Clock
from relaydesk.core.relay.hop import ATTESTATION_PATH, DETAILS_PATH
from relaydesk.engine.hopcheck.service import HopChecks
from relaydesk.engine.relay.service import NetworkService
from relaydesk.surfaces.network.app import make_network_app
from relaydesk.surfaces.network.attestation import attestation
from relaydesk.surfaces.network.details import details
from relaydesk.surfaces.network.dialback import dial_back
from relaydesk.surfaces.network.directory import directory_routes
from relaydesk.surfaces.network.models import list_models, show_model
from relaydesk.surfaces.network.probed import probed
from relaydesk.surfaces.network.server import NetworkServer
from relaydesk.surfaces.network.serving import Rates, serving
from relaydesk.surfaces.network.state import Network, Route


def network_listener(
    service: NetworkService, settings: Settings, clock: Clock, checks: HopChecks | None = None
) -> NetworkServer:
    """The server of a network that is up. To be made inside a running loop.

    ``checks`` of this node's edge are answered where they are given.
    """
    parts = service.parts
    assert parts is not None
    proxies = tuple(ipaddress.ip_network(text) for text in settings.trusted_proxies)
    rates = Rates(
        parts.forwarder.circuits.clients, clock, lambda: service.ground.settings().target_per_minute, proxies
    )
    routes = [
        Route("GET", DETAILS_PATH, details(parts.own)),
        Route("GET", ATTESTATION_PATH, attestation),
        Route("GET", "/v1/models", list_models(parts.own)),
        Route("GET", "/v1/models/{id}", show_model(parts.own)),
        *(serving(parts.target, lambda: settings.heartbeat, rates) if parts.target is not None else ()),
        *(directory_routes(parts.keeper) if parts.keeper is not None else ()),
        *(() if checks is None else (Route("POST", DIALBACK_PATH, dial_back(checks.desk())),)),
    ]
    network = Network(
        forwarder=parts.forwarder,
        clock=clock,
        routes=routes,
        draining=service.ground.draining,
        prefix=urlsplit(settings.public_url).path.rstrip("/"),
        proxies=proxies,
        left=parts.scrubber.left,
    )
    if checks is not None:
        network = replace(network, probed=probed(checks.nonces))
    return make_network_app(network)

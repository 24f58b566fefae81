from __future__ import annotations

from pathlib import Path

from aiohttp import web

from relaydesk.core.codec import encode
from relaydesk.surfaces.control import routes
from relaydesk.surfaces.control.server import ControlServer
from tests.contract.rigs import LiveNode
from tests.support.clock import FakeClock

# The seed's control plane, by name and method.
SEED = {
    ("GET", "/status"),
    ("GET", "/nodes"),
    ("PATCH", "/nodes"),
    ("DELETE", "/nodes"),
    ("POST", "/nodes/token"),
    ("POST", "/nodes/{id}/wipe"),
    ("GET", "/models"),
    ("POST", "/models"),
    ("PATCH", "/models"),
    ("DELETE", "/models"),
    ("POST", "/keys"),
    ("DELETE", "/keys"),
    ("POST", "/keys/default/rotate"),
}
OURS = {
    ("PATCH", "/keys"),
    ("GET", "/watch"),
    ("GET", "/views"),
    ("GET", "/views/{section}"),
    ("POST", "/commands/{name}"),
}


async def test_the_seeds_routes_and_ours_are_served(live: LiveNode, path: Path) -> None:
    app = web.Application()
    ControlServer(live.node, path, FakeClock())._add_routes(app.router)
    served = {
        (route.method, route.resource.canonical)
        for route in app.router.routes()
        if route.resource is not None
    }
    assert served >= SEED | OURS
    # Whatever else there is names the same things by rest path.
    assert {path for _, path in served - SEED - OURS} == {
        "/models/{name}",
        "/nodes/{id}",
        "/keys/{name}",
    }


def test_both_ends_agree_on_the_last_line() -> None:
    assert encode({"closed": "lagged"}).startswith(routes.CLOSED_PREFIX)

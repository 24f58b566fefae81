"""``GET /v1/zs/attestation``: this node runs in no environment that could prove itself (wire §1.1)."""

from __future__ import annotations

from aiohttp import web

from relaydesk.core.relay.catalogue import WireError
from relaydesk.surfaces.network.asked import Asked


async def attestation(_asked: Asked) -> web.StreamResponse:
    """The route's handler."""
    raise WireError("attestation_disabled", "this node offers no attestation")

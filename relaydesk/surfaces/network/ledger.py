"""``POST /v1/zs/ledger``: a payer's sealed question about his account, at a path of ours (design §6)."""

from __future__ import annotations

from aiohttp import web

from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.sealed.body import MEDIA_TYPE
from relaydesk.engine.relay.target.desk import LEDGER_LIMIT, Target
from relaydesk.surfaces.network.asked import Asked
from relaydesk.surfaces.network.body import Body
from relaydesk.surfaces.network.sealed import sealed_response
from relaydesk.surfaces.network.state import Handler


def ledger(target: Target) -> Handler:
    """The route's handler."""

    async def answer(asked: Asked) -> web.StreamResponse:
        if asked.content_type != MEDIA_TYPE:
            raise WireError("bad_envelope", f"a question is sealed, and sent as {MEDIA_TYPE}")
        return sealed_response(
            asked, await target.ledger(await Body(asked, LEDGER_LIMIT).whole()), MEDIA_TYPE
        )

    return answer

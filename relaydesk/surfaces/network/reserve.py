"""``POST /v1/zs/reserve``: asking to be served (wire §4.3)."""

from __future__ import annotations

from aiohttp import web

from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.records.reserve import MEDIA_TYPE
from relaydesk.core.relay.records.reserve_response import MEDIA_TYPE as ANSWER_TYPE
from relaydesk.engine.relay.target.desk import Target
from relaydesk.engine.relay.target.reserve import RESERVE_LIMIT
from relaydesk.surfaces.network.asked import Asked
from relaydesk.surfaces.network.body import Body
from relaydesk.surfaces.network.sealed import sealed_response
from relaydesk.surfaces.network.state import Handler


def reserve(target: Target) -> Handler:
    """The route's handler."""

    async def answer(asked: Asked) -> web.StreamResponse:
        if asked.content_type != MEDIA_TYPE:
            raise WireError("bad_content_type", f"a reserve is sealed, and sent as {MEDIA_TYPE}")
        return sealed_response(asked, await target.reserve(await _body(asked)), ANSWER_TYPE)

    return answer


async def _body(asked: Asked) -> bytes:
    try:
        return await Body(asked, RESERVE_LIMIT, "bad_reserve_envelope").whole()
    except WireError as error:
        if error.code == "request_too_large":
            raise WireError("reserve_body_too_large", error.message) from None
        raise

"""``GET /v1/models`` of the network listener: what is offered, with prices (wire §5.2)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

from aiohttp import hdrs, web

from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.price.listing import listed_pricing
from relaydesk.core.relay.price.rate import parse_usd
from relaydesk.core.relay.records.details import OfferedModel
from relaydesk.engine.relay.details import OwnDetails
from relaydesk.surfaces.network.asked import Asked
from relaydesk.surfaces.network.cors import own_headers
from relaydesk.surfaces.network.state import Handler


def list_models(own: OwnDetails) -> Handler:
    """The list's handler."""

    async def answer(asked: Asked) -> web.StreamResponse:
        return _json(asked, {"object": "list", "data": [_entry(each) for each in own.models()]})

    return answer


def show_model(own: OwnDetails) -> Handler:
    """The handler of one entry, the same as in the list."""

    async def answer(asked: Asked) -> web.StreamResponse:
        wanted = unquote(asked.rest)
        for each in own.models():
            if each.id == wanted:
                return _json(asked, _entry(each))
        raise WireError("not_found", "there is no such model here")

    return answer


def _entry(model: OfferedModel) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": model.id,
        "object": "model",
        "created": 0,
        "owned_by": "relaydesk",
        "context_length": model.context_window or None,
        "architecture": {
            "input_modalities": list(model.input_modalities or ("text",)),
            "output_modalities": list(model.output_modalities or ("text",)),
        },
        "pricing": listed_pricing(
            parse_usd(model.input_rate_usd_per_1m), parse_usd(model.output_rate_usd_per_1m)
        ),
        "top_provider": {
            "context_length": model.context_window or None,
            "max_completion_tokens": model.max_output_tokens or None,
        },
        "reasoning": model.reasoning is not None and model.reasoning.supported,
        "tool_use": model.tool_use,
        "canonical_slug": model.id,
    }
    return {name: value for name, value in entry.items() if value is not None}


def _json(asked: Asked, document: object) -> web.Response:
    headers = own_headers(asked.place)
    headers[hdrs.CONTENT_TYPE] = "application/json"
    return web.Response(body=json.dumps(document).encode(), headers=headers)

"""``GET /v1/models`` and ``GET /v1/models/{id}`` as the seed shows them."""

from __future__ import annotations

import msgspec
from aiohttp import web

from relaydesk.core.gateway.away import PREFIX, Offer, is_network_id, offered
from relaydesk.core.gateway.models import (
    ModelEntry,
    ModelName,
    entry_body,
    id_from_path,
    list_body,
    require_model,
)
from relaydesk.core.gateway.network_models import network_entry
from relaydesk.core.view.sections import ModelView
from relaydesk.surfaces.public.state import CALLER, HUB


async def list_models(request: web.Request) -> web.Response:
    """Every registered model that the key may use, with its state and whether it fits; then the network's."""
    entries = [*map(_entry, visible(request)), *map(network_entry, offers(request))]
    return web.Response(body=list_body(entries), content_type="application/json")


async def show_model(request: web.Request) -> web.Response:
    """One model; its id may contain ``/`` and ``:``, escaped or not (B25)."""
    wanted = id_from_path(request.match_info["id"])
    offer = offer_of(request, wanted)
    if offer is not None:
        return web.Response(body=entry_body(network_entry(offer)), content_type="application/json")
    models = visible(request)
    name = require_model(wanted, [ModelName(model.name, model.aliases) for model in models])
    found = next(model for model in models if model.name == name)
    return web.Response(body=entry_body(_entry(found)), content_type="application/json")


def visible(request: web.Request) -> list[ModelView]:
    """What is not a key's to use is not its to know of."""
    caller = request[CALLER]
    return [model for model in request.app[HUB].models().models if caller.allows(model.name)]


def offers(request: web.Request) -> list[Offer]:
    """Models of the relay network that the key may use."""
    caller = request[CALLER]
    if not caller.may_network:
        return []
    found = request.app[HUB].offers()
    return [each for each in found if is_network_id(each.id) and caller.allows(PREFIX + each.id)]


def offer_of(request: web.Request, name: str) -> Offer | None:
    """The network's model that a name means, None for any other."""
    return offered(name.removeprefix(PREFIX), offers(request)) if name.startswith(PREFIX) else None


def _entry(model: ModelView) -> ModelEntry:
    return ModelEntry(
        id=model.name,
        created=model.added_at_ms // 1000,
        context_length=model.context_length,
        state=model.state,
        fits=model.fits,
        fit_reason=str(model.fit_reason),
        placement=model.placement,
        max_model_len=model.context_length or msgspec.UNSET,
    )

"""``GET /v1/models`` and ``GET /v1/models/{id}`` as the seed shows them."""

from __future__ import annotations

from aiohttp import web

from relaydesk.core.gateway.models import (
    ModelEntry,
    ModelName,
    entry_body,
    id_from_path,
    list_body,
    require_model,
)
from relaydesk.core.view.sections import ModelView
from relaydesk.surfaces.public.state import HUB


async def list_models(request: web.Request) -> web.Response:
    """Every registered model with its state and whether it fits."""
    view = request.app[HUB].models()
    body = list_body(_entry(model) for model in view.models)
    return web.Response(body=body, content_type="application/json")


async def show_model(request: web.Request) -> web.Response:
    """One model; its id may contain ``/`` and ``:``, escaped or not (B25)."""
    view = request.app[HUB].models()
    wanted = id_from_path(request.match_info["id"])
    name = require_model(wanted, [ModelName(model.name, model.aliases) for model in view.models])
    found = next(model for model in view.models if model.name == name)
    return web.Response(body=entry_body(_entry(found)), content_type="application/json")


def _entry(model: ModelView) -> ModelEntry:
    return ModelEntry(
        id=model.name,
        created=model.added_at_ms // 1000,
        context_length=model.context_length,
        state=model.state,
        fits=model.fits,
        fit_reason=str(model.fit_reason),
        placement=model.placement,
    )

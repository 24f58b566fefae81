"""The routes of Ollama's dialect, behind the same key and on the same pool as every other."""

from __future__ import annotations

from typing import Final

import msgspec
from aiohttp import web

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.choose import choose_model
from relaydesk.core.gateway.decode import decoder
from relaydesk.core.gateway.models import ModelName
from relaydesk.core.gateway.network_models import network_facts
from relaydesk.core.gateway.ollama.chat import chat_plan
from relaydesk.core.gateway.ollama.generate import generate_plan
from relaydesk.core.gateway.ollama.listing import ps_body, show_body, tags_body, version_body
from relaydesk.core.gateway.ollama.request import opened
from relaydesk.surfaces.public.body import read_body
from relaydesk.surfaces.public.generate import generation
from relaydesk.surfaces.public.middleware import error_response
from relaydesk.surfaces.public.models import offer_of, offers, visible
from relaydesk.surfaces.public.ollama_embed import embed, embeddings
from relaydesk.surfaces.public.state import HUB, Handler

_JSON: Final = "application/json"

# What clients have buttons for and only the operator can do, with how.
REFUSED: Final[dict[tuple[str, str], Fault]] = {
    ("POST", "/api/pull"): Fault(
        "refused", "models are fetched by the operator", "on the hub, run `relaydesk model pull REF`"
    ),
    ("POST", "/api/copy"): Fault(
        "refused",
        "models get their names from the operator",
        "on the hub, run `relaydesk model set NAME --alias OTHER`",
    ),
    ("DELETE", "/api/delete"): Fault(
        "refused", "models are removed by the operator", "on the hub, run `relaydesk model rm NAME`"
    ),
    ("POST", "/api/create"): Fault(
        "not_built",
        "no models are made here",
        "on the hub, `relaydesk model add PATH` registers a GGUF file that is there",
    ),
    ("POST", "/api/push"): Fault("not_built", "this hub publishes no models"),
    ("POST", "/api/blobs/{digest}"): Fault(
        "not_built",
        "files of models are not taken from clients",
        "on the hub, `relaydesk model add PATH` registers a GGUF file that is there",
    ),
    ("HEAD", "/api/blobs/{digest}"): Fault("not_found", "files of models are not kept by digest here"),
}


class _Named(msgspec.Struct):
    model: str | None = None
    name: str | None = None


_NAMED: Final = decoder(_Named)


def add_ollama(table: web.UrlDispatcher) -> None:
    """Add every route of the dialect to ``table``."""
    table.add_get("/", running)
    table.add_get("/api/version", version)
    table.add_get("/api/tags", tags)
    table.add_get("/api/ps", ps)
    table.add_post("/api/show", show)
    table.add_post("/api/chat", generation(chat_plan, "/api/chat"))
    table.add_post("/api/generate", generation(generate_plan, "/api/generate"))
    table.add_post("/api/embed", embed)
    table.add_post("/api/embeddings", embeddings)
    for (method, path), fault in REFUSED.items():
        table.add_route(method, path, _refusing(fault))


async def running(_request: web.Request) -> web.Response:
    """What Ollama's own command line looks for before anything else; it sends no key there."""
    return web.Response(text="Ollama is running")


async def version(_request: web.Request) -> web.Response:
    """The version of the dialect."""
    return web.Response(body=version_body(), content_type=_JSON)


async def tags(request: web.Request) -> web.Response:
    """The models that a request of this key would be served from now, or once others fall idle."""
    names = [model.name for model in visible(request) if model.state != "unavailable"]
    away = [network_facts(offer) for offer in offers(request) if offer.warm]
    return web.Response(body=tags_body([*map(request.app[HUB].facts, names), *away]), content_type=_JSON)


async def ps(request: web.Request) -> web.Response:
    """The models that are loaded and that the key may use."""
    names = [model.name for model in visible(request)]
    return web.Response(body=ps_body(map(request.app[HUB].facts, names)), content_type=_JSON)


async def show(request: web.Request) -> web.Response:
    """One model, under ``model`` or the older ``name``."""
    hub = request.app[HUB]
    wanted = opened(_NAMED, await read_body(request, hub.max_body))
    offer = offer_of(request, wanted.model or wanted.name or "")
    if offer is not None:
        return web.Response(body=show_body(network_facts(offer)), content_type=_JSON)
    known = [ModelName(model.name, model.aliases) for model in visible(request)]
    name = choose_model(wanted.model or wanted.name, known)
    return web.Response(body=show_body(hub.facts(name)), content_type=_JSON)


def _refusing(fault: Fault) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        return error_response(request, fault)

    return handler

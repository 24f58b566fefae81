"""The hub's public application: its routes and what wraps them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aiohttp import web

from relaydesk.core.gateway.anthropic.plan import messages_plan
from relaydesk.core.gateway.chat import chat_plan
from relaydesk.core.gateway.completions.plan import completion_plan
from relaydesk.core.gateway.responses.plan import responses_plan
from relaydesk.core.gateway.work import Plan
from relaydesk.surfaces.public.body import answer_expect
from relaydesk.surfaces.public.cors import mark, with_preflight
from relaydesk.surfaces.public.count_tokens import count_tokens
from relaydesk.surfaces.public.embeddings import embeddings
from relaydesk.surfaces.public.generate import generation
from relaydesk.surfaces.public.health import healthz, readyz
from relaydesk.surfaces.public.host_check import with_host
from relaydesk.surfaces.public.malformed import answer_in_shape, hide_versions, server_logger
from relaydesk.surfaces.public.middleware import with_errors, with_key
from relaydesk.surfaces.public.models import list_models, show_model
from relaydesk.surfaces.public.ollama import add_ollama
from relaydesk.surfaces.public.openapi import openapi
from relaydesk.surfaces.public.routing import AnyPath
from relaydesk.surfaces.public.state import HUB, Hub

# Routes whose whole job is one generation, with what understands their bodies.
GENERATION: Final[dict[str, Callable[[bytes], Plan]]] = {
    "/v1/chat/completions": chat_plan,
    "/v1/completions": completion_plan,
    "/v1/responses": responses_plan,
    "/v1/messages": messages_plan,
}


def route_table(prefix: str = "") -> web.UrlDispatcher:
    """Every route by its canonical path; the other spellings of each follow from it.

    Each needs its row in `described`. ``prefix`` is where a proxy mounts the hub.
    """
    table = web.UrlDispatcher()
    table.add_get("/healthz", healthz)
    table.add_get("/health", healthz)
    table.add_get("/v1/health", healthz)
    table.add_get("/readyz", readyz)
    table.add_get("/openapi.json", openapi(table, prefix))
    table.add_get("/v1/models", list_models)
    table.add_get("/v1/models/{id:.+}", show_model)
    add_ollama(table)
    table.add_post("/v1/messages/count_tokens", count_tokens)
    table.add_post("/v1/embeddings", embeddings)
    for path, plan_of in GENERATION.items():
        table.add_post(path, generation(plan_of, path))
    return table


def make_app(hub: Hub) -> web.Application:
    """The application that the hub listener serves."""
    hide_versions()
    answer_in_shape()
    app = web.Application(
        middlewares=[with_errors, with_host, with_preflight, with_key],
        client_max_size=hub.max_body,
        # Bodies are decompressed by `read_body`, bounded and off the loop; aiohttp would do neither.
        handler_args={"logger": server_logger(), "auto_decompress": False},
    )
    app[HUB] = hub
    app.on_response_prepare.append(mark)
    prefix = hub.exposure.prefix
    app.router.register_resource(AnyPath(route_table(prefix), prefix, answer_expect))
    return app

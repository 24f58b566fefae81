"""What each route is for, what it takes and what it gives: one row for every route there is.

A route without a row fails `tests/surfaces/public/test_openapi.py`. Where a dialect has a type for what it
reads, the schema follows from it; the rest says what a client may rely on, and no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from relaydesk.core.gateway.anthropic import schema as anthropic
from relaydesk.core.gateway.chat_schema import CHAT_ANSWER, CHAT_REQUEST, ERROR
from relaydesk.core.gateway.completions import schema as completions
from relaydesk.core.gateway.embeddings import schema as embeddings
from relaydesk.core.gateway.json_schema import TEXT, Schema, listed, literal, of_type, shape
from relaydesk.core.gateway.models import ModelEntry
from relaydesk.core.gateway.ollama import schema as ollama
from relaydesk.core.gateway.responses import schema as responses


@dataclass(frozen=True, slots=True)
class Described:
    """One route.

    ``answer`` is the schema of what it gives, None for a route that only says why it refuses; ``media`` the
    type of that, ``stream`` of an answer that was asked to stream, empty for never; ``request`` the schema of
    a JSON body, None for none. ``open`` says that it needs no key; ``also`` are further statuses, by number,
    with what they mean.
    """

    summary: str
    answer: Schema | None = field(default_factory=dict)
    request: Schema | None = None
    media: str = "application/json"
    stream: str = ""
    open: bool = False
    also: Mapping[int, str] = field(default_factory=dict)


_SSE: Final = "text/event-stream"
_LINES: Final = "application/x-ndjson"
_STATUS: Final = shape({"status": TEXT})

_ENTRY: Final = of_type(ModelEntry)

DESCRIBED: Final[dict[str, Described]] = {
    "GET /healthz": Described("Whether the process runs", _STATUS, open=True),
    "GET /health": Described("Whether the process runs, where llama-server has it", _STATUS, open=True),
    "GET /v1/health": Described("Whether the process runs, where llama-server has it", _STATUS, open=True),
    "GET /readyz": Described(
        "Whether new requests are taken", _STATUS, open=True, also={503: "The node starts or drains"}
    ),
    "GET /openapi.json": Described("This document", {"type": "object"}),
    "GET /v1/models": Described(
        "Every registered model", shape({"object": literal("list"), "data": listed(_ENTRY)})
    ),
    "GET /v1/models/{id}": Described("One model; its id may have slashes", _ENTRY),
    "POST /v1/chat/completions": Described("Answer a conversation", CHAT_ANSWER, CHAT_REQUEST, stream=_SSE),
    "POST /v1/completions": Described(
        "Go on with a text", completions.ANSWER, completions.REQUEST, stream=_SSE
    ),
    "POST /v1/embeddings": Described("Texts as vectors", embeddings.ANSWER, embeddings.REQUEST),
    "POST /v1/responses": Described(
        "Answer a conversation, in OpenAI's newer shape", responses.ANSWER, responses.REQUEST, stream=_SSE
    ),
    "POST /v1/messages": Described(
        "Answer a conversation, in Anthropic's shape", anthropic.ANSWER, anthropic.REQUEST, stream=_SSE
    ),
    "POST /v1/messages/count_tokens": Described(
        "How many tokens a conversation would be", anthropic.COUNT, anthropic.COUNT_REQUEST
    ),
    "GET /": Described("That something is there", TEXT, media="text/plain", open=True),
    "GET /api/version": Described("The version of Ollama whose dialect is spoken", ollama.VERSION),
    "GET /api/tags": Described("The models that fit", ollama.TAGS),
    "GET /api/ps": Described("The models that are loaded", ollama.PS),
    "POST /api/show": Described("One model", ollama.SHOW, ollama.SHOW_REQUEST),
    "POST /api/chat": Described(
        "Answer a conversation, or load or unload its model",
        ollama.CHAT_ANSWER,
        ollama.CHAT_REQUEST,
        stream=_LINES,
    ),
    "POST /api/generate": Described(
        "Answer a prompt, or load or unload its model",
        ollama.GENERATE_ANSWER,
        ollama.GENERATE_REQUEST,
        stream=_LINES,
    ),
    "POST /api/embed": Described("Texts as vectors", ollama.EMBED_ANSWER, ollama.EMBED_REQUEST),
    "POST /api/embeddings": Described(
        "A text as a vector", ollama.EMBEDDINGS_ANSWER, ollama.EMBEDDINGS_REQUEST
    ),
    "POST /api/pull": Described("Refused: the operator fetches models", None),
    "POST /api/copy": Described("Refused: the operator names models", None),
    "POST /api/create": Described("Refused: no models are made here", None),
    "POST /api/push": Described("Refused: this hub publishes no models", None),
    "POST /api/blobs/{digest}": Described("Refused: files of models are not taken", None),
    "DELETE /api/delete": Described("Refused: the operator removes models", None),
}

ERRORS: Final[dict[str, Schema]] = {
    "openai": ERROR,
    "responses": ERROR,
    "anthropic": anthropic.ERROR,
    "ollama": ollama.ERROR,
}

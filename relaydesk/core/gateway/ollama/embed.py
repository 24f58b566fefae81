"""``POST /api/embed`` and the older ``POST /api/embeddings``: texts as vectors, in Ollama's shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.completions.prompt import Prompt
from relaydesk.core.gateway.decode import decoder, encode, invalid, present, require_string
from relaydesk.core.gateway.embeddings.request import EmbedRequest, check_dimensions, parse_inputs
from relaydesk.core.gateway.ollama.keep_alive import keep_alive_s
from relaydesk.core.gateway.ollama.options import Options, chat_fields
from relaydesk.core.gateway.ollama.request import opened
from relaydesk.core.gateway.output import Spent

_EMPTY: Final = (b"", b'""', b"[]")


class Common(msgspec.Struct):
    """The fields of both routes; an option is checked, and none of them shapes a vector."""

    model: str | None = None
    options: Options | None = None
    keep_alive: float | str | None = None


class Embed(Common):
    """A body of ``/api/embed``. ``truncate`` is on unless it was declined, as in Ollama."""

    input: Raw = Raw()
    truncate: bool | None = None
    dimensions: int | None = None


class Embeddings(Common):
    """A body of ``/api/embeddings``."""

    prompt: Raw = Raw()


_EMBED: Final = decoder(Embed)
_EMBEDDINGS: Final = decoder(Embeddings)


def embed_request(body: bytes) -> EmbedRequest:
    """What a body of ``/api/embed`` asks for; without an input only the model is loaded.

    Raises `PeerError` naming the client's own field.
    """
    given = opened(_EMBED, body)
    check_dimensions(given.dimensions)
    data = present(given.input)
    inputs = () if data in _EMPTY else parse_inputs(Raw(data))
    for each in inputs:
        if not each.is_text:
            raise invalid(each.at, f"{each.at} must be a string")
    return _request(given, inputs, given.dimensions, truncate=given.truncate is not False)


def embeddings_request(body: bytes) -> EmbedRequest:
    """What a body of ``/api/embeddings`` asks for. Raises as `embed_request` does."""
    given = opened(_EMBEDDINGS, body)
    data = present(given.prompt)
    inputs = () if data in _EMPTY else (Prompt(require_string(data, "prompt")),)
    return _request(given, inputs, None, truncate=False)


def embed_body(model: str, vectors: Sequence[bytes], prompt_tokens: int, spent: Spent) -> bytes:
    """The answer of ``/api/embed``; each of ``vectors`` is a JSON list."""
    return b'{"model":%b,"embeddings":[%b],"total_duration":%d,"load_duration":%d,"prompt_eval_count":%d}' % (
        encode(model),
        b",".join(vectors),
        spent.total,
        spent.load,
        prompt_tokens,
    )


def embeddings_body(vectors: Sequence[bytes]) -> bytes:
    """The answer of ``/api/embeddings``: one vector, empty where nothing was to embed."""
    return b'{"embedding":%b}' % (vectors[0] if vectors else b"[]")


def _request(
    given: Common, inputs: tuple[Prompt, ...], dimensions: int | None, *, truncate: bool
) -> EmbedRequest:
    chat_fields(given.options or Options())
    return EmbedRequest(
        model=given.model or None,
        inputs=inputs,
        dimensions=dimensions,
        truncate=truncate,
        keep_alive_s=keep_alive_s(given.keep_alive),
    )

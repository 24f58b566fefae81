"""The request as an engine gets it: rebuilt from an allow-list, one choice at a time, always streamed.

`EngineBody` is the allow-list: nothing a client sends reaches an engine but through one of its fields.
Streaming with progress is what lets the engine notice that its reader left; usage is asked for because the
account needs it whether or not the client did.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw

from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.request import ChatRequest
from relaydesk.core.gateway.sampling import Sampling, engine_sampling


class EngineBody(Sampling, frozen=True, omit_defaults=True, kw_only=True):
    """Every field an engine is ever sent for a chat."""

    model: str
    messages: Raw
    stream: bool | None = None
    stream_options: Raw | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    logit_bias: Raw | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    response_format: Raw | None = None
    tools: Raw | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: Raw | None = None
    return_progress: bool | None = None
    id_slot: int | None = None
    cache_prompt: bool | None = None


_USAGE: Final = Raw(b'{"include_usage":true}')


def engine_body(
    request: ChatRequest,
    *,
    alias: str,
    slot: int | None,
    cache_prompt: bool,
    choice: int = 0,
    extensions: bool = True,
) -> bytes:
    """The body for one choice of ``request``.

    ``alias`` is the name the engine knows the model by. ``extensions`` is false for an engine that knows only
    OpenAI's fields: progress, slot and prompt cache are then its own business. ``cache_prompt`` is the
    gateway's decision; a client may forbid what it allows, never allow what it forbids.
    """
    if extensions:
        own: dict[str, Any] = {
            "chat_template_kwargs": _raw(request.template_options),
            "return_progress": True,
            "id_slot": slot,
            "cache_prompt": cache_prompt and request.cache_prompt,
        }
    else:
        own = {
            "chat_template_kwargs": _raw(request.far_template_options),
            "reasoning_effort": request.effort,
        }
    body = EngineBody(
        model=alias,
        messages=Raw(request.messages),
        stream=True,
        stream_options=_USAGE,
        max_tokens=request.limit,
        stop=request.stop,
        **engine_sampling(request, choice),
        logit_bias=_raw(request.logit_bias),
        logprobs=True if request.logprobs else None,
        top_logprobs=_alternatives(request, extensions),
        response_format=_raw(request.response_format),
        tools=_raw(request.tools),
        parallel_tool_calls=request.parallel_tool_calls if request.tools else None,
        **own,
    )
    return encode(body)


def _alternatives(request: ChatRequest, extensions: bool) -> int | None:
    """``top_logprobs``. Without a number llama.cpp tells twenty a token, with 0 no logprobs at all."""
    if not request.logprobs:
        return None
    return (request.top_logprobs or 1) if extensions else request.top_logprobs


def _raw(data: bytes) -> Raw | None:
    return Raw(data) if data else None

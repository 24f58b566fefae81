"""The request as an engine gets it: rebuilt from an allow-list, one choice at a time, always streamed.

`EngineBody` is the allow-list: nothing a client sends reaches an engine but through one of its fields.
Streaming with progress is what lets the engine notice that its reader left; usage is asked for because the
account needs it whether or not the client did.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.fields import MAX_LAST
from relaydesk.core.gateway.request import ChatRequest

_SEEDS: Final = 2**32
# The engine reads this seed as "choose one".
_RANDOM_SEED: Final = 2**32 - 1


class EngineBody(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Every field an engine is ever sent for a chat."""

    model: str
    messages: Raw
    stream: bool | None = None
    stream_options: Raw | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repeat_penalty: float | None = None
    repeat_last_n: int | None = None
    typical_p: float | None = None
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


def choice_seed(seed: int | None, choice: int) -> int | None:
    """The seed of one choice: the client's plus the choice's number, in the engine's 32 bits.

    A seed that means "choose one" to the engine stands for a fixed one here: the client asked for it.
    """
    if seed is None:
        return None
    value = (seed + choice) % _SEEDS
    return 0 if value == _RANDOM_SEED else value


def last_n(asked: int | None) -> int | None:
    """``repeat_last_n`` as the engine takes it: -1, which stands for all, is no number to it any more."""
    return MAX_LAST if asked == -1 else asked


def engine_body(
    request: ChatRequest,
    *,
    alias: str,
    slot: int | None,
    cache_prompt: bool,
    choice: int = 0,
    cap: int | None = None,
    extensions: bool = True,
) -> bytes:
    """The body for one choice of ``request``.

    ``alias`` is the name the engine knows the model by. ``cap`` bounds the answer's tokens whatever was
    asked (a quota, the context). ``extensions`` is false for an engine that knows only OpenAI's fields:
    progress, slot and prompt cache are then its own business. ``cache_prompt`` is the gateway's decision;
    a client may forbid what it allows, never allow what it forbids.
    """
    limits = [value for value in (request.limit, cap) if value is not None]
    body = EngineBody(
        model=alias,
        messages=Raw(request.messages),
        stream=True,
        stream_options=_USAGE,
        max_tokens=min(limits, default=None),
        stop=request.stop,
        seed=choice_seed(request.seed, choice),
        temperature=request.temperature,
        top_p=request.top_p,
        top_k=request.top_k,
        min_p=request.min_p,
        presence_penalty=request.presence_penalty,
        frequency_penalty=request.frequency_penalty,
        repeat_penalty=request.repeat_penalty,
        repeat_last_n=last_n(request.repeat_last_n),
        typical_p=request.typical_p,
        logit_bias=_raw(request.logit_bias),
        logprobs=True if request.logprobs else None,
        top_logprobs=_alternatives(request, extensions),
        response_format=_raw(request.response_format),
        tools=_raw(request.tools),
        parallel_tool_calls=request.parallel_tool_calls if request.tools else None,
    )
    if extensions:
        body.chat_template_kwargs = _raw(request.template_options)
        body.return_progress = True
        body.id_slot = slot
        body.cache_prompt = cache_prompt and request.cache_prompt
    else:
        body.chat_template_kwargs = _raw(request.far_template_options)
        body.reasoning_effort = request.effort
    return encode(body)


def _alternatives(request: ChatRequest, extensions: bool) -> int | None:
    """``top_logprobs``. Without a number llama.cpp tells twenty a token, with 0 no logprobs at all."""
    if not request.logprobs:
        return None
    return (request.top_logprobs or 1) if extensions else request.top_logprobs


def _raw(data: bytes) -> Raw | None:
    return Raw(data) if data else None

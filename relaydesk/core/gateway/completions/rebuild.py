"""A completion as an engine gets it: rebuilt from an allow-list, one prompt and choice at a time."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.completions.prompt import Prompt
from relaydesk.core.gateway.completions.request import CompletionRequest
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.rebuild import choice_seed, last_n

_USAGE: Final = Raw(b'{"include_usage":true}')


class CompletionBody(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Every field an engine is ever sent for a completion."""

    model: str
    prompt: Raw
    suffix: Raw | None = None
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
    logprobs: int | None = None
    return_progress: bool | None = None
    id_slot: int | None = None
    cache_prompt: bool | None = None


def completion_body(
    request: CompletionRequest,
    choice: int,
    *,
    alias: str,
    slot: int | None,
    cache_prompt: bool,
    extensions: bool,
    infill: tuple[int, int, int] | None = None,
) -> bytes:
    """The body for one choice; arguments as `work.Work.body` has them.

    ``infill`` is the model's own tokens for what stands before the gap, what stands behind it, and the gap.
    The engine's route for it would cut both sides to a batch; as part of the prompt nothing is cut.
    """
    prompt = request.prompt_of(choice)
    body = CompletionBody(
        model=alias,
        prompt=Raw(prompt.body),
        stream=True,
        stream_options=_USAGE,
        max_tokens=request.limit,
        stop=request.stop,
        seed=choice_seed(request.seed, choice % request.n),
        temperature=request.temperature,
        top_p=request.top_p,
        top_k=request.top_k,
        min_p=request.min_p,
        presence_penalty=request.presence_penalty,
        frequency_penalty=request.frequency_penalty,
        repeat_penalty=request.repeat_penalty,
        repeat_last_n=last_n(request.repeat_last_n),
        typical_p=request.typical_p,
        logit_bias=Raw(request.logit_bias) if request.logit_bias else None,
        logprobs=request.logprobs,
    )
    if request.suffix:
        if extensions and infill is not None:
            body.prompt = Raw(_around_the_gap(prompt, request.suffix, infill))
        else:
            body.suffix = Raw(request.suffix)
    if extensions:
        # 0 would mean no logprobs at all there.
        body.logprobs = max(1, request.logprobs) if request.logprobs is not None else None
        body.return_progress = True
        body.id_slot = slot
        body.cache_prompt = cache_prompt and request.cache_prompt
    return encode(body)


def _around_the_gap(prompt: Prompt, suffix: bytes, infill: tuple[int, int, int]) -> bytes:
    """llama.cpp's mixed prompt of texts and token ids: prefix, suffix, gap.

    The empty text at its head is where the engine puts the token that begins a text, if the model has one.
    """
    before, behind, gap = infill
    prefix = prompt.body if prompt.is_text else prompt.body.strip()[1:-1]
    return b'["",%d,%b,%d,%b,%d]' % (before, prefix, behind, suffix, gap)

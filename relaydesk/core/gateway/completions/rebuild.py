"""A completion as an engine gets it: rebuilt from an allow-list, one prompt and choice at a time."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw

from relaydesk.core.gateway.completions.prompt import Prompt
from relaydesk.core.gateway.completions.request import CompletionRequest
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.sampling import Sampling, engine_sampling

_USAGE: Final = Raw(b'{"include_usage":true}')


class CompletionBody(Sampling, frozen=True, omit_defaults=True, kw_only=True):
    """Every field an engine is ever sent for a completion."""

    model: str
    prompt: Raw
    suffix: Raw | None = None
    stream: bool | None = None
    stream_options: Raw | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
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
    prompt, logprobs = request.prompt_of(choice), request.logprobs
    own: dict[str, Any] = {}
    if extensions:
        own |= {
            "return_progress": True,
            "id_slot": slot,
            "cache_prompt": cache_prompt and request.cache_prompt,
        }
        # 0 would mean no logprobs at all there.
        logprobs = max(1, logprobs) if logprobs is not None else None
    told = Raw(prompt.body)
    if request.suffix and extensions and infill is not None:
        told = Raw(_around_the_gap(prompt, request.suffix, infill))
    elif request.suffix:
        own["suffix"] = Raw(request.suffix)
    body = CompletionBody(
        model=alias,
        prompt=told,
        stream=True,
        stream_options=_USAGE,
        max_tokens=request.limit,
        stop=request.stop,
        **engine_sampling(request, choice % request.n),
        logit_bias=Raw(request.logit_bias) if request.logit_bias else None,
        logprobs=logprobs,
        **own,
    )
    return encode(body)


def _around_the_gap(prompt: Prompt, suffix: bytes, infill: tuple[int, int, int]) -> bytes:
    """llama.cpp's mixed prompt of texts and token ids: prefix, suffix, gap.

    The empty text at its head is where the engine puts the token that begins a text, if the model has one.
    """
    before, behind, gap = infill
    prefix = prompt.body if prompt.is_text else prompt.body.strip()[1:-1]
    return b'["",%d,%b,%d,%b,%d]' % (before, prefix, behind, suffix, gap)

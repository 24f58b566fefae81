"""The fields of ``POST /v1/completions``, and what each may be (null and absent mean the same)."""

from __future__ import annotations

from typing import Final

from msgspec import Raw

from relaydesk.core.gateway.decode import decoder, present, unsupported
from relaydesk.core.gateway.fields import RANGES, StreamOptions, check_model_name, check_numbers
from relaydesk.core.gateway.sampling import Sampling

# Bounds, both included; those that both routes have are the chat's.
NUMBERS: Final[dict[str, tuple[float, float]]] = {
    **{
        name: RANGES[name]
        for name in (
            "max_tokens",
            "n",
            "seed",
            "temperature",
            "top_p",
            "top_k",
            "min_p",
            "presence_penalty",
            "frequency_penalty",
            "repeat_penalty",
            "repeat_last_n",
            "typical_p",
        )
    },
    "logprobs": (0, 5),
    "best_of": (1, 16),
}
# Fields of other routes that would change the answer, with what to do instead.
REFUSED: Final[dict[str, str]] = {
    "messages": "send a chat to /v1/chat/completions, or a prompt here",
    "tools": "use /v1/chat/completions",
    "response_format": "use /v1/chat/completions",
}


class Envelope(Sampling, frozen=True):
    """A completion request as it came."""

    model: str | None = None
    prompt: Raw = Raw()
    suffix: Raw = Raw()
    echo: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    n: int | None = None
    best_of: int | None = None
    stop: Raw = Raw()
    logit_bias: Raw = Raw()
    logprobs: int | None = None
    cache_prompt: bool | None = None
    user: str | None = None
    messages: Raw = Raw()
    tools: Raw = Raw()
    response_format: Raw = Raw()


ENVELOPE: Final = decoder(Envelope)


def check_fields(envelope: Envelope) -> None:
    """Numbers within `NUMBERS`, and fields that do not go together. Raises `PeerError` naming the field."""
    check_numbers(envelope, NUMBERS)
    check_model_name(envelope.model)
    for name, instead in REFUSED.items():
        if present(getattr(envelope, name)):
            raise unsupported(name, f"{name} is not supported on this route", instead)
    if envelope.best_of is not None and envelope.best_of != (envelope.n or 1):
        raise unsupported(
            "best_of",
            "best_of other than n is not supported",
            "leave it out, or ask for n choices and take the best",
        )
    if envelope.echo and envelope.logprobs is not None:
        raise unsupported(
            "echo",
            "echo together with logprobs is not supported: a prompt's own logprobs are not to be had",
            "leave one of them out",
        )

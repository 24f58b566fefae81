"""The fields of a chat request that relaydesk knows, and what each may be.

null and absent mean the same; fields not listed are ignored. A known field that would change the answer in a
way no engine here can deliver is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import decode, decoder, encode, invalid, kind_of, present, unsupported
from relaydesk.core.gateway.sampling import MAX_LAST, Sampling

MAX_MODEL_NAME: Final = 256
MAX_STOPS: Final = 16
MAX_STOP_BYTES: Final = 8 * 1024
MAX_BIASES: Final = 1024
MAX_BIAS_BYTES: Final = 64 * 1024
MAX_TEMPLATE_BYTES: Final = 4 * 1024

_BIG: Final = 2**31 - 1
# Bounds, both included. 0 tokens is refused because the engine answers it with one.
RANGES: Final[dict[str, tuple[float, float]]] = {
    "max_tokens": (1, _BIG),
    "max_completion_tokens": (1, _BIG),
    "n": (1, 16),
    "seed": (-(2**63), 2**63 - 1),
    "temperature": (0, 2),
    "top_p": (0, 1),
    "top_k": (-1, _BIG),
    "min_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
    "repeat_penalty": (0.01, 10),
    "repeat_last_n": (-1, MAX_LAST),
    "typical_p": (0, 1),
    "top_logprobs": (0, 20),
}
EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

# Fields of OpenAI's API that would change the answer, with what to use instead.
REFUSED: Final[dict[str, str]] = {
    "functions": "use tools",
    "function_call": "use tool_choice",
    "audio": "answers are text",
    "web_search_options": "no web search is built in",
}


class StreamOptions(msgspec.Struct):
    """``stream_options``."""

    include_usage: bool | None = None


class TemplateOptions(msgspec.Struct, forbid_unknown_fields=True):
    """The template variables a client may set: the rest belong to the operator."""

    enable_thinking: bool | None = None
    reasoning_effort: str | None = None


class Envelope(Sampling, frozen=True):
    """A chat request as it came: small fields typed, anything that can be large kept raw.

    ``system`` is Anthropic's: some editors send it beside OpenAI's messages.
    """

    model: str | None = None
    messages: Raw = Raw()
    system: Raw = Raw()
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = None
    stop: Raw = Raw()
    logit_bias: Raw = Raw()
    logprobs: bool | None = None
    top_logprobs: int | None = None
    response_format: Raw = Raw()
    tools: Raw = Raw()
    tool_choice: Raw = Raw()
    parallel_tool_calls: bool | None = None
    cache_prompt: bool | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    chat_template_kwargs: Raw = Raw()
    user: Raw = Raw()
    modalities: Raw = Raw()
    functions: Raw = Raw()
    function_call: Raw = Raw()
    audio: Raw = Raw()
    web_search_options: Raw = Raw()


ENVELOPE: Final = decoder(Envelope)
_STOPS: Final = msgspec.json.Decoder(str | list[str])
_BIASES: Final = decoder(dict[str, float])
_TEMPLATE: Final = decoder(TemplateOptions)
_STRINGS: Final = decoder(list[str])


def check_numbers(envelope: Sampling, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Each number within its range, both ends included. Raises `PeerError` naming the field."""
    for name, (low, high) in ranges.items():
        value = getattr(envelope, name)
        if value is not None and not low <= value <= high:
            shown = value if abs(value) < 10**12 else "out of range"
            raise invalid(name, f"{name} is {shown}, allowed is {low} to {high}")


def check_model_name(model: str | None) -> None:
    """A name that some model could have. Raises `PeerError` naming the field."""
    if model is not None and len(model) > MAX_MODEL_NAME:
        raise invalid("model", f"model has {len(model)} characters, allowed is {MAX_MODEL_NAME}")


def check_ranges(envelope: Envelope) -> None:
    """Numbers within `RANGES`, and the fields that hang together. Raises `PeerError`."""
    check_numbers(envelope, RANGES)
    check_model_name(envelope.model)
    if envelope.top_logprobs and not envelope.logprobs:
        raise invalid("top_logprobs", "top_logprobs needs logprobs to be true")
    if envelope.reasoning_effort is not None:
        _check_effort("reasoning_effort", envelope.reasoning_effort)


def check_refused(envelope: Envelope) -> None:
    """Fields no engine here can honour. Raises `PeerError` ``unsupported`` naming the field."""
    for name, instead in REFUSED.items():
        if present(getattr(envelope, name)):
            raise unsupported(name, f"{name} is not supported", instead)
    modalities = present(envelope.modalities)
    if modalities and any(kind != "text" for kind in decode(_STRINGS, modalities, "modalities")):
        raise unsupported("modalities", "modalities other than text are not supported")
    if envelope.verbosity not in (None, "medium"):
        raise unsupported("verbosity", "verbosity is not supported", "say in the messages how long to be")
    user = present(envelope.user)
    if user and user[:1] != b'"':
        raise invalid("user", f"user must be a string, not {kind_of(user)}")


def stop_texts(raw: Raw) -> tuple[str, ...]:
    """``stop`` as texts; an empty text stops nothing and is left out. Raises `PeerError`."""
    data = present(raw)
    if not data:
        return ()
    if len(data) > MAX_STOP_BYTES:
        raise invalid("stop", f"stop has {len(data)} bytes, allowed is {MAX_STOP_BYTES}")
    found = decode(_STOPS, data, "stop")
    texts = (found,) if isinstance(found, str) else tuple(found)
    if len(texts) > MAX_STOPS:
        raise invalid("stop", f"stop has {len(texts)} texts, allowed is {MAX_STOPS}")
    return tuple(text for text in texts if text)


def logit_biases(raw: Raw) -> bytes:
    """``logit_bias`` as JSON, checked: token ids to -100..100. Raises `PeerError`.

    A key that is no number would be tokenised as text by the engine: not what the field means.
    """
    data = present(raw)
    if not data:
        return b""
    if len(data) > MAX_BIAS_BYTES:
        raise invalid("logit_bias", f"logit_bias has {len(data)} bytes, allowed is {MAX_BIAS_BYTES}")
    biases = decode(_BIASES, data, "logit_bias")
    if len(biases) > MAX_BIASES:
        raise invalid("logit_bias", f"logit_bias has {len(biases)} entries, allowed is {MAX_BIASES}")
    for token, bias in biases.items():
        if not (token.isascii() and token.isdigit() and len(token) <= 9):
            raise invalid("logit_bias", "logit_bias must have token ids as keys")
        if not -100 <= bias <= 100:
            raise invalid("logit_bias", f"logit_bias of token {token} is {bias:g}, allowed is -100 to 100")
    return encode(biases) if biases else b""


def template_options(envelope: Envelope) -> tuple[bytes, bytes]:
    """What the chat template is told about reasoning, as JSON; empty where nothing was asked.

    First for an engine of ours, which is told everything this way: ``reasoning_effort`` is a hint, and a
    template that knows no such variable renders as ever. Then for a far server, which is told only what the
    client put there and knows the field itself.
    """
    data = present(envelope.chat_template_kwargs)
    if len(data) > MAX_TEMPLATE_BYTES:
        raise invalid(
            "chat_template_kwargs", f"chat_template_kwargs has more than {MAX_TEMPLATE_BYTES} bytes"
        )
    given = decode(_TEMPLATE, data, "chat_template_kwargs") if data else TemplateOptions()
    if given.reasoning_effort is not None:
        _check_effort("chat_template_kwargs.reasoning_effort", given.reasoning_effort)
    effort = envelope.reasoning_effort or given.reasoning_effort
    options: dict[str, object] = {}
    if effort == "none":
        options["enable_thinking"] = False
    elif effort is not None:
        options["reasoning_effort"] = effort
    if given.enable_thinking is not None:
        options["enable_thinking"] = given.enable_thinking
    named = {"enable_thinking": given.enable_thinking, "reasoning_effort": given.reasoning_effort}
    given_options = {name: value for name, value in named.items() if value is not None}
    return encode(options) if options else b"", encode(given_options) if given_options else b""


def _check_effort(param: str, value: str) -> None:
    if value not in EFFORTS:
        raise invalid(param, f"{param} must be one of {', '.join(EFFORTS)}")

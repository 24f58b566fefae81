"""The fields of ``POST /v1/responses``, and which of them are refused.

Nothing is kept here from one request to the next, and no tool runs on this side: a field that needs either
is refused by name. null and absent mean the same; fields not listed are ignored, as is what only concerns
OpenAI's own business (``store``, ``user``, ``service_tier``, cache keys).
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import decode, decoder, encode, invalid, present, unsupported
from relaydesk.core.text import safe_text

# Fields with the same name and meaning in a chat. Those behind ``temperature`` and ``top_p`` are not
# OpenAI's here, but clients of local models send them to either route.
SAME: Final = (
    "model",
    "stream",
    "temperature",
    "top_p",
    "parallel_tool_calls",
    "user",
    "stop",
    "seed",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repeat_penalty",
    "logit_bias",
    "chat_template_kwargs",
    "cache_prompt",
)
_KEPT: Final = "nothing is kept from one request to the next"
REFUSED: Final[dict[str, tuple[str, str]]] = {
    "previous_response_id": (_KEPT, "send the whole conversation in input"),
    "conversation": (_KEPT, "send the whole conversation in input"),
    "prompt": ("prompts are not stored here", "send instructions and input"),
    "context_management": ("a conversation is never shortened here", "shorten input"),
    "moderation": ("nothing is moderated here", ""),
}
LOGPROBS: Final = "message.output_text.logprobs"
# What else may be included belongs to tools that cannot be offered here, so that there is never any; and
# reasoning is not sealed here but given as it is.
INCLUDABLE: Final = frozenset(
    {
        LOGPROBS,
        "reasoning.encrypted_content",
        "message.input_image.image_url",
        "file_search_call.results",
        "web_search_call.results",
        "web_search_call.action.sources",
        "code_interpreter_call.outputs",
        "computer_call_output.output.image_url",
    }
)
MAX_INCLUDES: Final = 64
MAX_METADATA: Final = 16
MAX_KEY: Final = 64
MAX_VALUE: Final = 512
# Every character of sixteen full pairs as a surrogate pair of escapes.
_MAX_METADATA_BYTES: Final = MAX_METADATA * (MAX_KEY + MAX_VALUE) * 12


class Envelope(msgspec.Struct):
    """A request as it came. Fields that only pass through are raw: the chat's rules check them."""

    model: Raw = Raw()
    input: Raw = Raw()
    instructions: Raw = Raw()
    stream: Raw = Raw()
    max_output_tokens: Raw = Raw()
    temperature: Raw = Raw()
    top_p: Raw = Raw()
    top_logprobs: Raw = Raw()
    text: Raw = Raw()
    tools: Raw = Raw()
    tool_choice: Raw = Raw()
    parallel_tool_calls: Raw = Raw()
    reasoning: Raw = Raw()
    include: Raw = Raw()
    metadata: Raw = Raw()
    background: bool | None = None
    truncation: str | None = None
    previous_response_id: Raw = Raw()
    conversation: Raw = Raw()
    prompt: Raw = Raw()
    context_management: Raw = Raw()
    moderation: Raw = Raw()
    user: Raw = Raw()
    stop: Raw = Raw()
    seed: Raw = Raw()
    top_k: Raw = Raw()
    min_p: Raw = Raw()
    presence_penalty: Raw = Raw()
    frequency_penalty: Raw = Raw()
    repeat_penalty: Raw = Raw()
    logit_bias: Raw = Raw()
    chat_template_kwargs: Raw = Raw()
    cache_prompt: Raw = Raw()


class _Reasoning(msgspec.Struct):
    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None
    mode: str | None = None
    context: str | None = None


ENVELOPE: Final = decoder(Envelope)
_REASONING: Final = decoder(_Reasoning)
_STRINGS: Final = decoder(list[str])
_PAIRS: Final = decoder(dict[str, str])


def check_refused(envelope: Envelope) -> None:
    """Raises `PeerError` naming the field that cannot be honoured."""
    for name, (reason, instead) in REFUSED.items():
        data = present(getattr(envelope, name))
        if data and data != b"[]":
            raise unsupported(name, f"{name} is not supported: {reason}", instead)
    if envelope.background:
        raise unsupported("background", "background is not supported: an answer goes to who asked for it")
    if envelope.truncation not in (None, "auto", "disabled"):
        raise invalid("truncation", "truncation must be auto or disabled")


def wants_logprobs(envelope: Envelope) -> bool:
    """Whether logprobs were asked for, by ``include`` or by their number. Raises `PeerError`."""
    data = present(envelope.include)
    if len(data) > MAX_INCLUDES * MAX_KEY:
        raise invalid("include", f"include has {len(data)} bytes, allowed is {MAX_INCLUDES * MAX_KEY}")
    wanted = decode(_STRINGS, data, "include") if data else []
    for number, each in enumerate(wanted):
        if each not in INCLUDABLE:
            at = f"include[{number}]"
            raise unsupported(at, f"{at} {safe_text(each, 60)!r} cannot be included")
    return LOGPROBS in wanted or present(envelope.top_logprobs) not in (b"", b"0")


def effort_of(raw: Raw) -> str | None:
    """``reasoning.effort``, and a check of the rest of ``reasoning``. Raises `PeerError`.

    ``summary: auto`` is the server's choice, and ours is none: reasoning is given whole.
    """
    given = decode(_REASONING, present(raw) or b"{}", "reasoning")
    for name, value, kept in (
        ("summary", given.summary, "auto"),
        ("generate_summary", given.generate_summary, "auto"),
        ("mode", given.mode, "standard"),
        ("context", given.context, "auto"),
    ):
        if value not in (None, kept):
            at = f"reasoning.{name}"
            raise unsupported(at, f"{at} {safe_text(value, 40)!r} is not supported", f"use {kept}")
    return given.effort


def metadata_echo(raw: Raw) -> bytes:
    """``metadata`` as it is told back, within OpenAI's bounds. Raises `PeerError`."""
    data = present(raw)
    if not data:
        return b"{}"
    if len(data) > _MAX_METADATA_BYTES:
        raise invalid("metadata", f"metadata has {len(data)} bytes, allowed is {_MAX_METADATA_BYTES}")
    pairs = decode(_PAIRS, data, "metadata")
    if len(pairs) > MAX_METADATA:
        raise invalid("metadata", f"metadata has {len(pairs)} entries, allowed is {MAX_METADATA}")
    for key, value in pairs.items():
        if len(key) > MAX_KEY or len(value) > MAX_VALUE:
            shown = safe_text(key, MAX_KEY)
            raise invalid(
                "metadata",
                f"metadata {shown!r} is too long, allowed is {MAX_KEY} for a key, {MAX_VALUE} for a value",
            )
    return encode(pairs)

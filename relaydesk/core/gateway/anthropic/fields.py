"""The fields of ``POST /v1/messages``, and which of them are refused.

null and absent mean the same; fields not listed are ignored, as is what changes no answer (``metadata``,
``cache_control``, ``service_tier``).
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import decode, decoder, encode, invalid, present, unsupported
from relaydesk.core.gateway.entries import entries
from relaydesk.core.text import safe_text

# Fields with the same name and meaning in a chat. Those behind ``top_k`` are not Anthropic's, but clients of
# local models send them to every route.
SAME: Final = (
    "model",
    "stream",
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repeat_penalty",
    "chat_template_kwargs",
    "cache_prompt",
)
MAX_EDITS: Final = 64
REFUSED: Final[dict[str, tuple[str, str]]] = {
    "container": ("nothing is run here", ""),
    "mcp_servers": ("nothing is run here", "call such servers yourself and offer them as tools"),
}


class Envelope(msgspec.Struct):
    """A request as it came. Fields that only pass through are raw: the chat's rules check them."""

    model: Raw = Raw()
    messages: Raw = Raw()
    system: Raw = Raw()
    max_tokens: Raw = Raw()
    stop_sequences: Raw = Raw()
    stream: Raw = Raw()
    temperature: Raw = Raw()
    top_p: Raw = Raw()
    top_k: Raw = Raw()
    tools: Raw = Raw()
    tool_choice: Raw = Raw()
    thinking: Raw = Raw()
    output_config: Raw = Raw()
    output_format: Raw = Raw()
    context_management: Raw = Raw()
    container: Raw = Raw()
    mcp_servers: Raw = Raw()
    seed: Raw = Raw()
    min_p: Raw = Raw()
    presence_penalty: Raw = Raw()
    frequency_penalty: Raw = Raw()
    repeat_penalty: Raw = Raw()
    chat_template_kwargs: Raw = Raw()
    cache_prompt: Raw = Raw()


class _Thinking(msgspec.Struct):
    type: str
    display: str | None = None


class _Format(msgspec.Struct):
    type: str
    schema: Raw = Raw()


class _Output(msgspec.Struct):
    effort: str | None = None
    format: Raw = Raw()


class _Edit(msgspec.Struct):
    type: str
    keep: Raw = Raw()


class _Management(msgspec.Struct):
    edits: Raw = Raw()


ENVELOPE: Final = decoder(Envelope)
_NUMBER: Final = decoder(float)
_STRINGS: Final = decoder(list[str])
_THINKING: Final = decoder(_Thinking)
_OUTPUT: Final = decoder(_Output)
_FORMAT: Final = decoder(_Format)
_MANAGEMENT: Final = decoder(_Management)
_EDIT: Final = decoder(_Edit)


class Thinking(msgspec.Struct, frozen=True):
    """``enabled`` None leaves it to the model; ``shown`` is false where the client wants no thoughts."""

    enabled: bool | None = None
    shown: bool = True


def check_fields(envelope: Envelope) -> None:
    """What is narrower here than in a chat, and what cannot be honoured. Raises `PeerError`."""
    for name, (reason, instead) in REFUSED.items():
        data = present(getattr(envelope, name))
        if data and data != b"[]":
            raise unsupported(name, f"{name} is not supported: {reason}", instead)
    _check_edits(envelope.context_management)
    if data := present(envelope.temperature):
        value = decode(_NUMBER, data, "temperature")
        if not 0 <= value <= 1:
            raise invalid("temperature", f"temperature is {value:g}, allowed is 0 to 1")
    if (data := present(envelope.stop_sequences)) and data[:1] != b"[":
        decode(_STRINGS, data, "stop_sequences")


def thinking_of(raw: Raw) -> Thinking:
    """``thinking``, of which the budget is no limit but an aim. Raises `PeerError`."""
    data = present(raw)
    if not data:
        return Thinking()
    given = decode(_THINKING, data, "thinking")
    if given.type not in ("enabled", "disabled", "adaptive"):
        shown = safe_text(given.type, 40)
        raise unsupported(
            "thinking.type", f"thinking.type {shown!r} is not supported", "use enabled, disabled or adaptive"
        )
    enabled = None if given.type == "adaptive" else given.type == "enabled"
    return Thinking(enabled, given.display != "omitted")


def output_of(config: Raw, output_format: Raw) -> tuple[str | None, bytes, str]:
    """The effort, and ``response_format`` of a chat, empty for plain text, with what the client calls it."""
    given = decode(_OUTPUT, present(config) or b"{}", "output_config")
    for at, raw in (("output_config.format", given.format), ("output_format", output_format)):
        if data := present(raw):
            found = decode(_FORMAT, data, at)
            if found.type != "json_schema":
                raise invalid(f"{at}.type", f"{at}.type must be json_schema")
            schema = present(found.schema)
            if not schema:
                raise invalid(f"{at}.schema", f"{at}.schema is missing")
            body = b'{"type":"json_schema","json_schema":{"schema":%b}}' % schema
            return given.effort, body, at
    return given.effort, b"", ""


def options_of(thinking: Thinking, given: Raw) -> bytes:
    """``chat_template_kwargs`` of a chat, empty for none. What the client gave itself counts."""
    data = present(given)
    if data or thinking.enabled is None:
        return data
    return encode({"enable_thinking": thinking.enabled})


def _check_edits(raw: Raw) -> None:
    """Edits of the conversation that leave it as it is may pass: agents send them with every request."""
    data = present(raw)
    if not data:
        return
    edits = present(decode(_MANAGEMENT, data, "context_management").edits)
    for number, each in enumerate(entries(edits, "context_management.edits", MAX_EDITS) if edits else ()):
        at = f"context_management.edits[{number}]"
        edit = decode(_EDIT, each, at)
        if not (edit.type.startswith("clear_thinking") and present(edit.keep) == b'"all"'):
            shown = safe_text(edit.type, 40)
            raise unsupported(
                at,
                f"{at} of type {shown!r} is not supported: a conversation is never shortened here",
                "shorten messages",
            )

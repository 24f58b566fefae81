"""``POST /v1/messages`` as a chat request."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.anthropic.blocks import chat_messages
from relaydesk.core.gateway.anthropic.fields import (
    ENVELOPE,
    SAME,
    Envelope,
    check_fields,
    options_of,
    output_of,
    thinking_of,
)
from relaydesk.core.gateway.anthropic.tools import chat_choice, chat_tools
from relaydesk.core.gateway.decode import check_text, decode, encode, invalid, present
from relaydesk.core.gateway.field_names import FieldNames
from relaydesk.core.gateway.origin import in_the_words_of
from relaydesk.core.gateway.request import ChatRequest, parse_chat

# The chat's names for fields that are called otherwise here.
_NAMES: Final = {"stop": "stop_sequences", "reasoning_effort": "output_config.effort"}


class MessagesRequest(msgspec.Struct, frozen=True):
    """``thoughts`` says whether what the model thinks is to be told."""

    chat: ChatRequest
    thoughts: bool = True

    def __repr__(self) -> str:
        return f"MessagesRequest({self.chat!r})"


def parse_messages(body: bytes) -> MessagesRequest:
    """Check the body of ``POST /v1/messages``.

    Raises only `PeerError`: ``invalid_json``, ``invalid_request`` or ``unsupported``, with ``param`` naming
    the client's field where there is one.
    """
    envelope = _opened(body)
    if not present(envelope.max_tokens):
        raise invalid("max_tokens", "max_tokens is missing")
    return _translated(envelope)


def parse_count(body: bytes) -> ChatRequest:
    """Check the body of ``POST /v1/messages/count_tokens``: a message's, without a limit. Raises likewise."""
    return _translated(_opened(body)).chat


def _opened(body: bytes) -> Envelope:
    if not body or body.isspace():
        raise PeerError("invalid_json", "the request body is empty", "send a JSON object")
    check_text(body)
    return decode(ENVELOPE, body)


def _translated(envelope: Envelope) -> MessagesRequest:
    check_fields(envelope)
    names = FieldNames(_NAMES)
    thinking = thinking_of(envelope.thinking)
    effort, response_format, format_at = output_of(envelope.output_config, envelope.output_format)
    names.add("response_format", format_at)
    names.add("response_format.json_schema", format_at)
    choice, parallel = chat_choice(envelope.tool_choice)
    fields: dict[str, bytes] = {name: present(getattr(envelope, name)) for name in SAME}
    fields |= {
        "messages": chat_messages(envelope.system, envelope.messages, names),
        "stop": present(envelope.stop_sequences),
        "tools": chat_tools(envelope.tools, names),
        "tool_choice": choice,
        "parallel_tool_calls": parallel,
        "response_format": response_format,
        "reasoning_effort": encode(effort) if effort is not None else b"",
        "chat_template_kwargs": options_of(thinking, envelope.chat_template_kwargs),
    }
    with in_the_words_of(names):
        chat = parse_chat(encode({name: Raw(value) for name, value in fields.items() if value}))
    if chat.image_at is not None:
        chat = msgspec.structs.replace(chat, image_at=names(chat.image_at))
    return MessagesRequest(chat, thinking.shown)

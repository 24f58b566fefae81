"""``POST /v1/responses`` as a chat request, and what of it is told back."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import check_text, decode, encode, present
from relaydesk.core.gateway.field_names import FieldNames
from relaydesk.core.gateway.origin import in_the_words_of
from relaydesk.core.gateway.request import ChatRequest, parse_chat
from relaydesk.core.gateway.responses.fields import (
    ENVELOPE,
    SAME,
    check_refused,
    effort_of,
    metadata_echo,
    wants_logprobs,
)
from relaydesk.core.gateway.responses.items import chat_messages
from relaydesk.core.gateway.responses.tools import Tools, chat_format, chat_tools

# The chat's names for fields that are called otherwise here.
_NAMES: Final = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "logprobs": "include",
    "reasoning_effort": "reasoning.effort",
}


class ResponsesRequest(msgspec.Struct, frozen=True):
    """``echo`` is the JSON members of a response that repeat the request, without braces."""

    chat: ChatRequest
    echo: bytes

    def __repr__(self) -> str:
        return f"ResponsesRequest({self.chat!r})"


def parse_responses(body: bytes) -> ResponsesRequest:
    """Check the body of ``POST /v1/responses``.

    Raises only `PeerError`: ``invalid_json``, ``invalid_request`` or ``unsupported``, with ``param`` naming
    the client's field where there is one.
    """
    if not body or body.isspace():
        raise PeerError("invalid_json", "the request body is empty", "send a JSON object")
    check_text(body)
    envelope = decode(ENVELOPE, body)
    check_refused(envelope)
    names = FieldNames(_NAMES)
    metadata = metadata_echo(envelope.metadata)
    logprobs = wants_logprobs(envelope)
    effort = effort_of(envelope.reasoning)
    tools = chat_tools(envelope.tools, envelope.tool_choice, names)
    response_format, told_format = chat_format(envelope.text, names)
    fields: dict[str, bytes] = {name: present(getattr(envelope, name)) for name in SAME}
    fields |= {
        "messages": chat_messages(envelope.input, envelope.instructions, names),
        "max_tokens": present(envelope.max_output_tokens),
        "logprobs": b"true" if logprobs else b"",
        "top_logprobs": present(envelope.top_logprobs) if logprobs else b"",
        "response_format": response_format,
        "tools": tools.chat,
        "tool_choice": tools.choice,
        "reasoning_effort": encode(effort) if effort is not None else b"",
    }
    with in_the_words_of(names):
        chat = parse_chat(encode({name: Raw(value) for name, value in fields.items() if value}))
    if chat.image_at is not None:
        chat = msgspec.structs.replace(chat, image_at=names(chat.image_at))
    return ResponsesRequest(chat, _echo(chat, tools, told_format, effort, metadata))


def _echo(chat: ChatRequest, tools: Tools, text_format: bytes, effort: str | None, metadata: bytes) -> bytes:
    """What a response says of its request. The instructions are not repeated: they can be long."""
    members: dict[str, object] = {
        "background": False,
        "instructions": None,
        "max_output_tokens": chat.limit,
        "metadata": Raw(metadata),
        "parallel_tool_calls": chat.parallel_tool_calls is not False,
        "previous_response_id": None,
        "reasoning": {"effort": effort, "summary": None},
        "store": False,
        "temperature": chat.temperature,
        "text": {"format": Raw(text_format)},
        "tool_choice": Raw(tools.choice_echo),
        "tools": Raw(tools.echo),
        "top_logprobs": chat.top_logprobs or 0,
        "top_p": chat.top_p,
        "truncation": "disabled",
    }
    return encode(members)[1:-1]

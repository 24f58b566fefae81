"""``POST /api/chat``."""

from __future__ import annotations

from typing import Final

from msgspec import Raw

from relaydesk.core.gateway.decode import decoder, present
from relaydesk.core.gateway.ollama.messages import Conversation, Message, check_count
from relaydesk.core.gateway.ollama.output import chat_said
from relaydesk.core.gateway.ollama.request import Common, chat_of, field_names, load_of, opened
from relaydesk.core.gateway.work import Plan


class _Chat(Common):
    messages: list[Message] | None = None
    tools: Raw = Raw()


_CHAT: Final = decoder(_Chat)


def chat_plan(body: bytes) -> Plan:
    """The plan of a body. Raises `PeerError` whose ``param`` is the client's own field."""
    check_count(body)
    chat = opened(_CHAT, body)
    names = field_names()
    conversation = Conversation(names)
    conversation.add_all(chat.messages or ())
    if not conversation.count:
        return load_of(chat, chat_said)
    return chat_of(chat, conversation, names, chat_said, present(chat.tools))

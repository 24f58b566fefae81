"""``POST /api/chat``."""

from __future__ import annotations

from typing import Final

from msgspec import Raw

from relaydesk.core.gateway.decode import decoder, present
from relaydesk.core.gateway.ollama.messages import Conversation
from relaydesk.core.gateway.ollama.output import chat_said
from relaydesk.core.gateway.ollama.request import Asked, Common, asked, field_names, nothing_asked, opened


class _Chat(Common):
    messages: Raw = Raw()
    tools: Raw = Raw()


_CHAT: Final = decoder(_Chat)


def chat_asked(body: bytes) -> Asked:
    """What a body asks for. Raises `PeerError` whose ``param`` is the client's own field."""
    chat = opened(_CHAT, body)
    names = field_names()
    conversation = Conversation(names)
    if messages := present(chat.messages):
        conversation.add_all(messages)
    if not conversation.count:
        return nothing_asked(chat, chat_said)
    return asked(chat, conversation.body, names, chat_said, present(chat.tools))

"""``POST /api/generate``: one prompt, answered as a conversation of one message."""

from __future__ import annotations

from typing import Final

from msgspec import Raw

from relaydesk.core.gateway.decode import decoder, invalid, present, require_string, unsupported
from relaydesk.core.gateway.ollama.messages import Conversation
from relaydesk.core.gateway.ollama.output import generate_said
from relaydesk.core.gateway.ollama.request import Asked, Common, asked, field_names, nothing_asked, opened

_EMPTY: Final = b'""'


class _Generate(Common):
    prompt: Raw = Raw()
    system: Raw = Raw()
    images: Raw = Raw()
    suffix: Raw = Raw()
    template: Raw = Raw()
    context: Raw = Raw()
    raw: bool | None = None


_GENERATE: Final = decoder(_Generate)


def generate_asked(body: bytes) -> Asked:
    """What a body asks for. Raises `PeerError` whose ``param`` is the client's own field."""
    given = opened(_GENERATE, body)
    _refuse(given)
    prompt = require_string(present(given.prompt) or _EMPTY, "prompt")
    system = require_string(present(given.system) or _EMPTY, "system")
    images = present(given.images)
    if prompt == _EMPTY and not images.strip(b"[ \t\r\n]"):
        return nothing_asked(given, generate_said)
    names = field_names()
    conversation = Conversation(names)
    if system != _EMPTY:
        conversation.add_text("system", system, "system")
    conversation.add_text("user", prompt, "prompt", images, "images")
    names.add("messages", "prompt")
    return asked(given, conversation.body, names, generate_said)


def _refuse(given: _Generate) -> None:
    """What no chat model can be asked for. Raises `PeerError` naming the field."""
    if given.raw:
        raise unsupported(
            "raw", "raw is not supported here", "ask /v1/completions, which takes a bare prompt"
        )
    if present(given.suffix) not in (b"", _EMPTY):
        raise unsupported("suffix", "suffix is not supported here", "ask /v1/completions")
    if present(given.template) not in (b"", _EMPTY):
        raise unsupported(
            "template",
            "a template in a request is not supported",
            "leave it out: the model's own is used, or the one the operator gave it",
        )
    context = present(given.context)
    if context and context[:1] != b"[":
        raise invalid("context", "context must be a list of numbers")
    if context.strip(b"[ \t\r\n]"):
        raise unsupported("context", "context is not supported", "send the conversation itself to /api/chat")

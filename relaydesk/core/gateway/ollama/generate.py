"""``POST /api/generate``: one prompt, answered as a conversation of one message.

With ``raw`` the prompt goes to the engine as it is, without a chat's template; with ``suffix`` the gap
between the two is filled.
"""

from __future__ import annotations

from typing import Final

from msgspec import Raw

from relaydesk.core.gateway.decode import decoder, invalid, kind_of, present, unsupported
from relaydesk.core.gateway.ollama.messages import Conversation, Json, text_at
from relaydesk.core.gateway.ollama.output import generate_said
from relaydesk.core.gateway.ollama.request import (
    Common,
    chat_of,
    completion_of,
    field_names,
    load_of,
    opened,
)
from relaydesk.core.gateway.work import Plan

_EMPTY: Final = b'""'
_BLANK: Final = b"[] \t\r\n"


class _Generate(Common):
    prompt: Raw = Raw()
    system: Raw = Raw()
    images: Raw = Raw()
    suffix: Raw = Raw()
    template: Raw = Raw()
    context: Raw = Raw()
    raw: bool | None = None


_GENERATE: Final = decoder(_Generate)


def generate_plan(body: bytes) -> Plan:
    """The plan of a body. Raises `PeerError` whose ``param`` is the client's own field."""
    given = opened(_GENERATE, body)
    _refuse(given)
    prompt, system, suffix = text_at(given.prompt, "prompt"), text_at(given.system, "system"), _suffix(given)
    images = present(given.images)
    has_images = bool(images.strip(_BLANK))
    if prompt == _EMPTY and suffix == _EMPTY and not has_images:
        return load_of(given, generate_said)
    if given.raw or suffix != _EMPTY:
        _refuse_beside("raw" if given.raw else "suffix", given, system, has_images)
        return completion_of(given, prompt, suffix, generate_said)
    names = field_names()
    conversation = Conversation(names)
    if system != _EMPTY:
        conversation.add_text("system", system, "system")
    conversation.add_text("user", prompt, "prompt", images, "images")
    names.add("messages", "prompt")
    return chat_of(given, conversation, names, generate_said)


def _suffix(given: _Generate) -> Json:
    suffix = text_at(given.suffix, "suffix")
    if suffix != _EMPTY and given.raw:
        raise unsupported("suffix", "suffix does not go together with raw", "leave one of them out")
    return suffix


def _refuse(given: _Generate) -> None:
    """What cannot be done in any form. Raises `PeerError` naming the field."""
    if text_at(given.template, "template") != _EMPTY:
        raise unsupported(
            "template",
            "a template in a request is not supported",
            "leave it out: the model's own is used, or the one the operator gave it; or send raw",
        )
    context = present(given.context)
    if context and context[:1] != b"[":
        raise invalid("context", f"context must be a list, not {kind_of(context)}")
    if context.strip(_BLANK):
        raise unsupported("context", "context is not supported", "send the conversation itself to /api/chat")


def _refuse_beside(mode: str, given: _Generate, system: Json, has_images: bool) -> None:
    """What needs a chat's template, where ``mode`` does without. Raises `PeerError` naming the field."""
    needs = {
        "system": system != _EMPTY,
        "images": has_images,
        "format": present(given.format) not in (b"", _EMPTY),
        "think": bool(given.think),
    }
    for name, there in needs.items():
        if there:
            raise unsupported(name, f"{name} does not go together with {mode}", "leave one of them out")

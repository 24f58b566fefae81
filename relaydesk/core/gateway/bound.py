"""More tokens than a prompt can have, told from its bytes alone.

A token of a text stands for at least one byte of it, in every tokenizer there is here, and JSON never writes
a text in fewer bytes than it has. What a template puts around each message, and once around all, is bounded
by the template's own length (`template_bound`); tools are written out by templates with indents.
"""

from __future__ import annotations

from typing import Final

from relaydesk.core.gateway.completions.request import CompletionRequest
from relaydesk.core.gateway.request import ChatRequest

# Around one message: its marks, its role, what closes it.
_MESSAGE: Final = 64
# Indented JSON of tools against the compact form that is held here.
_TOOLS: Final = 4
# What one image comes to at most, whatever its size: projectors scale down.
IMAGE_TOKENS: Final = 4096
# A template that is not known: a far server's, or one of the engine's own.
_LEAST_TEMPLATE: Final = 2048


def chat_bound(request: ChatRequest) -> int:
    """At least the tokens of a chat, but for what its template adds once."""
    bound = len(request.messages) + _TOOLS * len(request.tools) + _MESSAGE * request.message_count
    images = request.messages.count(b'"image_url":{') if request.image_at else 0
    return bound + IMAGE_TOKENS * images + 4 * len(request.response_format)


def completion_bound(request: CompletionRequest) -> int:
    """At least the tokens of all prompts of a completion, each with its suffix, and of what begins a text."""
    prompts = sum(len(prompt.body) for prompt in request.prompts)
    return prompts + (len(request.suffix) + 8) * len(request.prompts)


def template_bound(template_bytes: int) -> int:
    """At least the tokens that a template adds once. A short one may be no more than a template's name."""
    return max(template_bytes, _LEAST_TEMPLATE)

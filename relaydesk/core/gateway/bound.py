"""More tokens than a prompt can have, and fewer than it must have, told from its bytes alone.

A token of a text stands for at least one byte of it, in every tokenizer there is here, and JSON never writes
a text in fewer bytes than it has. What a template puts around each message, and once around all, is bounded
by the template's own length (`template_bound`); tools are written out by templates with indents.

The other way round, no vocabulary that is known has a token of more than `LONGEST_TOKEN` bytes: a prompt
whose bytes are more than that many times a context is refused without an engine, which would take seconds.
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
# Vocabularies have tokens of up to 128 bytes or so (runs of spaces and dashes); this is far above.
LONGEST_TOKEN: Final = 1024
# Only from this size on is it worth looking.
_LONG: Final = 64 * 1024
# A template that is not known: a far server's, or one of the engine's own.
_LEAST_TEMPLATE: Final = 2048


def chat_bound(request: ChatRequest) -> int:
    """At least the tokens of a chat, but for what its template adds once."""
    bound = len(request.messages) + _TOOLS * len(request.tools) + _MESSAGE * request.message_count
    images = request.messages.count(b'"image_url":{') if request.image_at else 0
    return bound + IMAGE_TOKENS * images + 4 * len(request.response_format)


def text_floor(*texts: bytes) -> int:
    """At most the tokens of JSON ``texts``, 0 for short ones.

    An escape has at most six bytes for at least one byte of text.
    """
    size = sum(map(len, texts))
    if size < _LONG:
        return 0
    return (size - 5 * sum(text.count(b"\\") for text in texts)) // LONGEST_TOKEN


def chat_floor(request: ChatRequest) -> int:
    """At most the tokens of a chat; 0 where that cannot be told: images are no text."""
    if request.image_at:
        return 0
    return max(0, text_floor(request.messages) - request.message_count)


def completion_bound(request: CompletionRequest) -> int:
    """At least the tokens of all prompts of a completion, each with its suffix, and of what begins a text."""
    prompts = sum(len(prompt.body) for prompt in request.prompts)
    return prompts + (len(request.suffix) + 8) * len(request.prompts)


def template_bound(template_bytes: int) -> int:
    """At least the tokens that a template adds once. A short one may be no more than a template's name."""
    return max(template_bytes, _LEAST_TEMPLATE)

"""Which dialect a path belongs to, and how each says an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.anthropic.errors import anthropic_error_reply
from relaydesk.core.gateway.errors import ErrorReply, error_reply
from relaydesk.core.gateway.ollama.errors import ollama_error_reply

Dialect = Literal["openai", "anthropic", "ollama"]

_REPLIES: Final[dict[Dialect, Callable[[Fault], ErrorReply]]] = {
    "openai": error_reply,
    "anthropic": anthropic_error_reply,
    "ollama": ollama_error_reply,
}
_ROOTS: Final[dict[str, Dialect]] = {
    "/api": "ollama",
    "/v1/messages": "anthropic",
}


def dialect_of(path: str) -> Dialect:
    """The dialect of a normalised request path: what is under none of `_ROOTS` is OpenAI's."""
    for root, dialect in _ROOTS.items():
        if path == root or path.startswith(f"{root}/"):
            return dialect
    return "openai"


def dialect_reply(path: str, fault: Fault) -> ErrorReply:
    """``fault`` as a whole answer in the dialect of ``path``."""
    return _REPLIES[dialect_of(path)](fault)

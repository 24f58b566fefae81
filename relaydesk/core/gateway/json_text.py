"""Strings that stay JSON on their way through: checked to be strings, joined, never decoded."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from relaydesk.core.gateway.decode import decode, decoder, invalid, present, require_string

_STRING = decoder(str)


def text_of(raw: Raw, at: str) -> bytes:
    """The JSON string at ``at``, which must be there. Raises `PeerError` ``invalid_request``."""
    data = present(raw)
    if not data:
        raise invalid(at, f"{at} is missing")
    return require_string(data, at)


def word_of(raw: Raw, at: str) -> str:
    """A short string, decoded: a name or a kind. Raises `PeerError` as `text_of` does."""
    return decode(_STRING, text_of(raw, at), at)


def joined(texts: Sequence[bytes], separator: bytes = b"") -> bytes:
    """JSON strings as one; ``separator`` is text as it stands inside a JSON string."""
    if len(texts) == 1:
        return texts[0]
    return b'"' + separator.join(text[1:-1] for text in texts) + b'"'

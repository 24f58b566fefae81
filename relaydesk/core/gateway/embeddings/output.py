"""Embeddings as OpenAI's clients read them."""

from __future__ import annotations

from collections.abc import Sequence

from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.embeddings.request import Encoding
from relaydesk.core.gateway.embeddings.vector import base64_of, numbers_of


def item(number: int, vector: bytes, encoding: Encoding) -> bytes:
    """One entry of ``data``: little-endian float32 in base64, or numbers."""
    said = b'"%b"' % base64_of(vector) if encoding == "base64" else encode(numbers_of(vector))
    return b'{"object":"embedding","index":%d,"embedding":%b}' % (number, said)


def whole(items: Sequence[bytes], model: str, prompt_tokens: int) -> bytes:
    """The body of an answer."""
    return b'{"object":"list","data":[%b],"model":%b,"usage":{"prompt_tokens":%d,"total_tokens":%d}}' % (
        b",".join(items),
        encode(model),
        prompt_tokens,
        prompt_tokens,
    )

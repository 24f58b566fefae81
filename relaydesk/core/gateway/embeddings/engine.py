"""What an engine is asked to embed, and what it answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.embeddings.request import EmbedRequest
from relaydesk.core.gateway.embeddings.vector import vector_of
from relaydesk.core.gateway.faults import context_fault, engine_fault

EMBED_PATH: Final = "/v1/embeddings"


class _Item(msgspec.Struct):
    embedding: Raw
    index: int = 0


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0


class _Reply(msgspec.Struct):
    data: list[_Item]
    usage: _Usage | None = None


_REPLY: Final = msgspec.json.Decoder(_Reply)


class Embedded(msgspec.Struct, frozen=True):
    """An engine's answer: vectors as JSON, in the order of the inputs, and the tokens it counted."""

    vectors: tuple[bytes, ...]
    prompt_tokens: int


def piece_body(alias: str, ids: bytes, *, normal: bool) -> bytes:
    """The request for one piece of token ids; ``normal`` asks for a vector of length 1, as clients get it."""
    length = b"" if normal else b',"embd_normalize":-1'
    return b'{"model":%b,"encoding_format":"base64","input":[%b]%b}' % (encode(alias), ids, length)


def far_body(alias: str, request: EmbedRequest) -> bytes:
    """The request for a far server: all inputs at once, and OpenAI's fields only."""
    inputs = b",".join(each.body for each in request.inputs)
    size = b"" if request.dimensions is None else b',"dimensions":%d' % request.dimensions
    return b'{"model":%b,"encoding_format":%b,"input":[%b]%b}' % (
        encode(alias),
        encode(request.encoding),
        inputs,
        size,
    )


def embedded(status: int, body: bytes, count: int) -> Embedded:
    """An engine's answer to ``count`` inputs.

    Raises `PeerError`: what the engine said is wrong, about ``input``, or ``engine_failed``.
    """
    if status != 200:
        raise _error(about_input(engine_fault(status, body)))
    try:
        reply = _REPLY.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise PeerError("engine_failed", "the engine sent something that is no list of embeddings") from None
    items = sorted(reply.data, key=lambda item: item.index)
    if [item.index for item in items] != list(range(count)):
        raise PeerError("engine_failed", f"the engine sent {len(items)} embeddings for {count} inputs")
    tokens = reply.usage.prompt_tokens if reply.usage is not None else 0
    return Embedded(tuple(bytes(item.embedding) for item in items), max(0, tokens))


def single(status: int, body: bytes) -> bytes:
    """The vector in an engine's answer to one input. Raises `PeerError` as `embedded` does."""
    return vector_of(embedded(status, body, 1).vectors[0])


def about_input(fault: Fault, at: str = "input") -> Fault:
    """A fault that speaks of a chat's messages, said about what is embedded."""
    if fault.param != "messages":
        return fault
    return replace(fault, param=at, hint="embed it in parts" if fault.hint else "")


def too_long(tokens: int, limit: int, at: str) -> PeerError:
    """The refusal of a text that is longer than the model's context, in the words of a chat's."""
    fault = about_input(context_fault(tokens, limit), at)
    return _error(replace(fault, message=fault.message.replace("the prompt", at)))


def _error(fault: Fault) -> PeerError:
    return PeerError(fault.code, fault.message, fault.hint, param=fault.param, retry_after=fault.retry_after)

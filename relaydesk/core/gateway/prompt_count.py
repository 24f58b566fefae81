"""How long a prompt is, as its engine counts it."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.faults import engine_fault

# Takes a chat's body; renders the template and counts, but asks no model.
COUNT_PATH: Final = "/v1/chat/completions/input_tokens"
# Takes a text and gives its tokens.
TOKENIZE_PATH: Final = "/tokenize"


class _Count(msgspec.Struct):
    input_tokens: int = -1
    tokens: Raw = Raw()


_COUNT: Final = msgspec.json.Decoder(_Count)


def counted(status: int, body: bytes) -> int:
    """The tokens in an engine's answer.

    Raises `PeerError`: what the engine said is wrong, or ``engine_failed`` where it is no count.
    """
    if status != 200:
        fault = engine_fault(status, body)
        raise PeerError(fault.code, fault.message, fault.hint, param=fault.param)
    try:
        found = _COUNT.decode(body)
        count = _length(bytes(found.tokens)) if found.tokens else found.input_tokens
    except (msgspec.MsgspecError, ValueError, RecursionError):
        count = -1
    if count < 0:
        raise PeerError("engine_failed", "the engine did not say how many tokens there are")
    return count


def tokenize_body(text: bytes) -> bytes:
    """The request that counts ``text``, a JSON string, as a prompt of its own."""
    return b'{"content":%b,"add_special":true,"parse_special":true}' % text


def _length(tokens: bytes) -> int:
    """How many numbers a JSON list of numbers has, -1 where it is none. Nothing is built for each."""
    if tokens[:1] != b"[" or tokens.count(b"[") != 1:
        return -1
    return tokens.count(b",") + 1 if tokens.strip(b"[] \t\r\n") else 0

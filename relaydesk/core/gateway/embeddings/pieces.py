"""A text's tokens cut into pieces that an engine can embed at once.

Token ids stay what the engine wrote: digits and commas. Nothing is built for each of what may be many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.faults import engine_fault

_SPACE: Final = b" \t\r\n"


class _Tokens(msgspec.Struct):
    tokens: Raw = Raw()


_TOKENS: Final = msgspec.json.Decoder(_Tokens)


def tokens_of(status: int, body: bytes) -> bytes:
    """The ids in an engine's answer of its tokenizer, comma between them.

    Raises `PeerError`: what the engine said is wrong, or ``engine_failed`` where these are no ids.
    """
    if status != 200:
        fault = engine_fault(status, body)
        raise PeerError(fault.code, fault.message, fault.hint, param=fault.param)
    try:
        found = bytes(_TOKENS.decode(body).tokens).translate(None, _SPACE)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        found = b""
    if found.translate(None, b"0123456789,") != b"[]":
        raise PeerError("engine_failed", "the engine did not say what a text's tokens are")
    return found[1:-1]


def count(ids: bytes) -> int:
    """How many ids there are."""
    return ids.count(b",") + 1 if ids else 0


def first(ids: bytes, size: int) -> bytes:
    """The first ``size`` ids, or all where there are fewer."""
    match = re.match(rb"\d+(?:,\d+){0,%d}" % (size - 1), ids)
    return match[0] if match else b""


def later(ids: bytes, start: int, size: int) -> Iterator[bytes]:
    """From the ``start``-th id on, ``size`` ids at a time."""
    rest = ids[len(first(ids, start)) + 1 :]
    for match in re.finditer(rb"\d+(?:,\d+){0,%d}" % (size - 1), rest):
        yield match[0]


def shortened(ids: bytes, size: int, nothing: bytes) -> bytes:
    """``size`` of the ids, the first ones, and as last what ends every text, where something does.

    ``nothing`` are the ids of an empty text: what begins a text, what ends it, both, or neither.
    """
    marks = nothing.split(b",") if nothing else []
    begins = ids.partition(b",")[0]
    ends = marks[-1:] if len(marks) > 1 or (marks and marks[0] != begins) else []
    if not ends or size < 2:
        return first(ids, size)
    return b",".join([first(ids, size - 1), *ends])

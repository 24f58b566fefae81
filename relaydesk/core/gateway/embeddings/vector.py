"""Embeddings as numbers: float32, little endian, one behind the other."""

from __future__ import annotations

import binascii
import struct
from math import sqrt
from typing import Final

import msgspec

from relaydesk.core.errors import PeerError

_FLOATS: Final = msgspec.json.Decoder(list[float])
_WIDTH: Final = 4


def vector_of(raw: bytes) -> bytes:
    """The vector in an engine's JSON: base64 of float32, or a list of numbers.

    Raises `PeerError` ``engine_failed`` where it is neither, or empty.
    """
    try:
        if raw[:1] == b'"':
            data = binascii.a2b_base64(raw[1:-1].replace(b"\\/", b"/"), strict_mode=True)
        else:
            data = packed(_FLOATS.decode(raw))
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError):
        data = b""
    if not data or len(data) % _WIDTH:
        raise PeerError("engine_failed", "the engine sent an embedding that is no vector")
    return data


def packed(numbers: list[float]) -> bytes:
    """Numbers as a vector. Raises `OverflowError` for one that float32 cannot hold."""
    return struct.pack(f"<{len(numbers)}f", *numbers)


def numbers_of(vector: bytes) -> tuple[float, ...]:
    """A vector's numbers."""
    return struct.unpack(f"<{len(vector) // _WIDTH}f", vector)


def base64_of(vector: bytes) -> bytes:
    """A vector as clients ask for it by ``base64``."""
    return binascii.b2a_base64(vector, newline=False)


class Mean:
    """The mean of vectors, each of which is itself the mean over some tokens, brought to length 1."""

    def __init__(self) -> None:
        self._sum: list[float] = []

    def add(self, vector: bytes, tokens: int) -> None:
        """Add the mean over ``tokens`` tokens; fewer than 0 take one back that was in another.

        Raises `PeerError` ``engine_failed`` where it has another length than those before.
        """
        numbers = numbers_of(vector)
        if not self._sum:
            self._sum = [0.0] * len(numbers)
        if len(numbers) != len(self._sum):
            raise PeerError("engine_failed", "the engine sent embeddings of different lengths")
        self._sum = [total + tokens * number for total, number in zip(self._sum, numbers, strict=True)]

    def vector(self) -> bytes:
        """The mean so far."""
        length = sqrt(sum(number * number for number in self._sum))
        return packed([number / length if length else 0.0 for number in self._sum])

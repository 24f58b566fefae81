"""Bytes with something wrong: a good sample in which bytes were changed, cut, doubled or put in."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

# What readers of JSON, base64 and server-sent events trip over.
_BITS = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"\0", b"\xff", b"\xed\xa0\x80", b"\n", b"\r\n", b"\n\n",
    b"null", b"true", b"NaN", b"1e999", b"-1", b"1.0", b"18446744073709551616", b"9" * 400, b"=", b"==",
    b"\\ud800", b"\\u0000", b"[" * 3000, b'{"a":' * 2000, b"data: ", b"event: zs\n", b"[DONE]", b": x\n",
]  # fmt: skip


def mutants(sample: bytes, count: int, seed: int = 1) -> Iterator[bytes]:
    """``count`` variants of ``sample``, the same in every run."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(sample)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(data) + 1)
            to = min(len(data), at + chance.choice((1, 1, 2, 8, 64)))
            kind = chance.randrange(5)
            if kind == 0:
                data[at:to] = chance.randbytes(to - at)
            elif kind == 1:
                del data[at:to]
            elif kind == 2:
                data[at:at] = data[at:to]
            elif kind == 3:
                data[at:at] = chance.choice(_BITS)
            else:
                del data[at:]
        yield bytes(data)


def survives(read: Callable[[bytes], Any], error: type[Exception], sample: bytes, count: int) -> None:
    """``read`` takes the sample, and of its mutants each is read or refused by ``error``; some are refused.

    Whatever else is raised fails the test.
    """
    read(sample)
    refused = 0
    for data in mutants(sample, count):
        try:
            read(data)
        except error:
            refused += 1
    assert refused > count // 10

"""The memory of a process that this one started, searched as bytes. Linux, root or its parent only.

Searched is all that the process can read and that is no unwritten part of a file: heap, mapped blocks,
stacks, the data of libraries. It stands still meanwhile.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

# A mapping is read in pieces: one of a model can be large.
_PIECE: Final = 16 * 1024 * 1024


class Found(NamedTuple):
    """A place in a process's memory, and what is around it."""

    what: bytes
    mapping: str
    address: int
    around: bytes


class Snapshot:
    """The writable memory of a process at one moment."""

    def __init__(self, pid: int) -> None:
        self._parts: list[tuple[str, int, bytes]] = []
        os.kill(pid, signal.SIGSTOP)
        try:
            _wait_stopped(pid)
            self._parts.extend(_read(pid))
        finally:
            os.kill(pid, signal.SIGCONT)

    def __len__(self) -> int:
        return sum(len(data) for _, _, data in self._parts)

    def find(self, *needles: bytes, most: int = 50, around: int = 64) -> list[Found]:
        """Where any of ``needles`` stands, at most ``most`` places of each mapping and needle."""
        found = []
        for name, start, data in self._parts:
            for needle in needles:
                for at in _places(data, needle, most):
                    part = data[max(0, at - around) : at + len(needle) + around]
                    found.append(Found(needle, name, start + at, part))
        return found

    def together(
        self, some: Iterable[bytes], others: Iterable[bytes], within: int
    ) -> list[tuple[Found, Found]]:
        """Pairs of one of ``some`` and one of ``others`` that are no more than ``within`` bytes apart."""
        rest = tuple(others)
        pairs = []
        for name, start, data in self._parts:
            for needle in some:
                for at in _places(data, needle, 10_000):
                    low = max(0, at - within)
                    near = data[low : at + len(needle) + within]
                    one = Found(needle, name, start + at, b"")
                    pairs += [
                        (one, Found(other, name, start + low + place, near[max(0, place - 64) : place + 128]))
                        for other in rest
                        for place in _places(near, other, 1)
                    ]
        return pairs


def _read(pid: int) -> Iterator[tuple[str, int, bytes]]:
    """Neighbouring mappings are one, so that nothing is missed at their seam."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in lines:
            place, rights, _offset, _device, inode, *name = line.split(maxsplit=5)
            mapping = name[0] if name else "anonymous"
            if "r" not in rights or mapping in ("[vvar]", "[vsyscall]", "[vvar_vclock]", "[vdso]"):
                continue
            # A page of a private file mapping differs from the file only where it may be written.
            if inode != "0" and "w" not in rights and "s" not in rights:
                continue
            low, high = (int(text, 16) for text in place.split("-"))
            data = bytearray()
            for at in range(low, high, _PIECE):
                memory.seek(at)
                data += memory.read(min(_PIECE, high - at))
            yield mapping, low, bytes(data)


def _wait_stopped(pid: int) -> None:
    for _ in range(500):
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            return
        time.sleep(0.002)
    raise AssertionError("the process does not stand still")


def _places(data: bytes, needle: bytes, most: int) -> Iterator[int]:
    at = data.find(needle)
    while at >= 0 and most > 0:
        yield at
        most -= 1
        at = data.find(needle, at + 1)

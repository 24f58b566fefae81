"""Overwriting what relayed requests left in memory that is free again.

Nothing refers to a request once its circuit is closed, but neither the interpreter's allocator nor glibc's
clears what it gets back, and uvloop reads into one buffer that keeps what came last. A page of such memory
can hold a whole request: a body, and an address beside a target. So whatever is free is taken, filled with
zeros and given back, at most once a second and only after something was let go (design §6).

How the allocators hand out memory is known here, and nothing depends on it but how much is overwritten:

- The interpreter keeps blocks up to 512 bytes by size, in pools of 16 KiB. A size whose free blocks are all
  taken gets a new pool, whose blocks then come one after the other (CPython ``obmalloc.c``).
- glibc takes the smallest free chunk that is large enough before it takes new memory, and splits it. A
  thread's cache keeps up to seven chunks of each small size beside that (glibc ``malloc.c``).
- Blocks of 128 KiB and more are mapped and gone once freed (`engine/malloc`).
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import gc
import os
from collections import Counter, deque
from itertools import repeat
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")

PAUSE_S: Final = 1.0
# A round comes so many pauses after something was let go. What ends a request is over before the last of its
# objects is gone: the next rounds find those, and what a time-out lets go later, like a resting connection.
_ROUNDS: Final = frozenset({1, 2, 4, 7, 11, 20, 50, 110})
# All but one of a queue's block.
_PLACES: Final = (None,) * 63

# uvloop's buffer, and a pipe that holds as much at once.
_RECEIVED: Final = 256_000
_PIPE: Final = 256 * 1024

_SMALL: Final = range(16, 513, 16)
_POOL: Final = 16 * 1024
_POOL_HEAD: Final = 48
_ARENA: Final = 1024 * 1024
# Bounds for an interpreter or a C library that works otherwise, and for a node with much free memory.
_MOST_SMALL: Final = 8 * 1024 * 1024
_MOST_LARGE: Final = 64 * 1024 * 1024
_BYTES_HEAD: Final = b"".__sizeof__()
_TWO_DIGITS: Final = 1 << 40

# Of glibc: what asks for a chunk of each size that a thread's cache may hold; the smallest that it never
# holds; and sizes of which the next takes what the last has left of a chunk.
_CACHED: Final = range(24, 1033, 16)
_CACHED_EACH: Final = 7
_LARGE: Final = 1048
_HALVES: Final = (520, 248, 120, 56, 24)


class Scrubber:
    """Overwrites free memory after `left`. Its methods belong to the loop."""

    name = "relay scrub"

    def __init__(self) -> None:
        self._since = max(_ROUNDS)
        self._heap = _Heap.find()

    def left(self) -> None:
        """Something of a request was let go."""
        self._since = 0

    async def run(self) -> None:
        """Overwrite when there is need, until cancelled."""
        receiver = await _Receiver.open()
        try:
            while True:
                await asyncio.sleep(PAUSE_S)
                self._since += 1
                if self._since not in _ROUNDS:
                    continue
                # Where a request ended in an error, its traceback and its objects hold each other. What the
                # node began with is frozen (`engine/collector`), so this is below a millisecond.
                gc.collect()
                receiver.overwrite()
                overwrite_small()
                # The loop has its turn between the two, each of which is some milliseconds.
                await asyncio.sleep(0)
                if self._heap is not None:
                    self._heap.overwrite()
        finally:
            receiver.close()


def filled(empty: deque[T]) -> deque[T]:
    """The same queue, each place of which was written once.

    A queue begins with a block of 64 places as it was found. One that lasts as long as a connection would
    keep what was there, out of reach of any `Scrubber`.
    """
    queue = cast("deque[Any]", empty)
    # An empty one is extended from its second place on.
    queue.extend(_PLACES)
    queue.appendleft(None)
    while queue:
        queue.pop()
    return empty


class _Receiver(asyncio.Protocol):
    """The end of a pipe of our own: reading it fills the buffer that the loop reads every socket into."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._zeros = bytes(_RECEIVED)
        self._transport: asyncio.ReadTransport | None = None

    @classmethod
    async def open(cls) -> _Receiver:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        receiver = cls(writing)
        try:
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE)
        except (OSError, AttributeError):
            pass  # Linux alone can make it larger, up to a bound: what fits is what is overwritten
        loop = asyncio.get_running_loop()
        receiver._transport, _ = await loop.connect_read_pipe(lambda: receiver, os.fdopen(reading, "rb", 0))
        return receiver

    def overwrite(self) -> None:
        """Have the loop read zeros, in its next turn."""
        try:
            os.write(self._pipe, self._zeros)
        except BlockingIOError:
            pass  # it has not read the last ones yet

    def close(self) -> None:
        os.close(self._pipe)
        if self._transport is not None:
            self._transport.close()


def overwrite_small() -> None:
    """Overwrite the interpreter's free blocks."""
    held: list[object] = []
    # Pools that are free as a whole come first: a size that took one afterwards would keep what is in it.
    # A whole arena of them is a new one, or the last: it comes when no other has any.
    _take(_SMALL[-1], _ARENA // _POOL - 1, held)
    for size in _SMALL:
        _take(size, 1, held)


def _take(size: int, pools: int, held: list[object]) -> None:
    """Take blocks of one size until so many pools in a row, which were free as a whole, are full of them."""
    each = (_POOL - _POOL_HEAD) // size
    count = (pools + 1) * each
    while count * size <= _MOST_SMALL:
        blocks = _zeros(size, count)
        held.append(blocks)
        # Looked at when all are made: an address is an object, too.
        counts = Counter([place // _POOL for place in map(id, blocks)])
        whole = {pool for pool, found in counts.items() if found == each}
        if any(whole.issuperset(range(pool, pool + pools)) for pool in whole):
            return
        count *= 2


def _zeros(size: int, count: int) -> list[object]:
    """Blocks of this size that hold nothing of what was there."""
    if size == 16:
        return [object() for _ in repeat(None, count)]
    if size == 32:
        return [-_TWO_DIGITS for _ in repeat(None, count)]
    length = size - _BYTES_HEAD
    return [bytes(length) for _ in repeat(None, count)]


class _Info(ctypes.Structure):
    """``struct mallinfo2``."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


class _Heap:
    """glibc's allocator, as the thread of the loop has it."""

    def __init__(self, libc: ctypes.CDLL) -> None:
        self._info = libc.mallinfo2
        self._info.restype = _Info
        self._malloc, self._calloc, self._free = libc.malloc, libc.calloc, libc.free
        self._malloc.restype = self._calloc.restype = ctypes.c_void_p
        self._malloc.argtypes = (ctypes.c_size_t,)
        self._calloc.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
        self._free.argtypes = (ctypes.c_void_p,)
        self._free.restype = None

    @classmethod
    def find(cls) -> _Heap | None:
        """None where the C library is another."""
        try:
            return cls(ctypes.CDLL(None))
        except (OSError, AttributeError):
            return None

    def overwrite(self) -> None:
        """Overwrite its free chunks."""
        taken: list[int | None] = []
        self._take_cached(taken)
        free = min(self._info().fordblks, _MOST_LARGE)
        held = [bytes(_LARGE - _BYTES_HEAD) for _ in range(free // _LARGE + 1)]
        calloc = self._calloc
        for size in _HALVES:
            taken += [calloc(1, size) for _ in range(self._info().ordblks)]
        # Chunks of the same size went into the cache meanwhile, as they were.
        self._take_cached(taken)
        del held
        free_one = self._free
        for address in taken:
            free_one(address)

    def _take_cached(self, taken: list[int | None]) -> None:
        for size in _CACHED:
            for _ in range(_CACHED_EACH):
                address = self._malloc(size)
                if address:
                    ctypes.memset(address, 0, size)
                taken.append(address)

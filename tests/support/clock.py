"""Time and randomness that tests set by hand."""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import itertools


class FakeClock:
    """A `Clock` that moves only by `advance`; `sleep` wakes when the time has come."""

    def __init__(self, wall_ms: int = 1_700_000_000_000, mono: float = 1000.0) -> None:
        self._wall_ms = wall_ms
        self._mono = mono
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []
        self._count = itertools.count()

    def wall_ms(self) -> int:
        return self._wall_ms

    def mono(self) -> float:
        return self._mono

    def set_wall_ms(self, wall_ms: int) -> None:
        """Set the wall clock, as an administrator or NTP does; durations do not notice."""
        self._wall_ms = wall_ms

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks and wake whoever is due. Does not wait for them to run."""
        if seconds < 0:
            raise ValueError("time only goes forward")
        self._wall_ms += round(seconds * 1000)
        self._mono += seconds
        while self._sleepers and self._sleepers[0][0] <= self._mono:
            heapq.heappop(self._sleepers)[2].set()

    async def sleep(self, seconds: float) -> None:
        """In place of ``asyncio.sleep``: returns once `advance` has covered ``seconds``."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.Event()
        heapq.heappush(self._sleepers, (self._mono + seconds, next(self._count), woken))
        await woken.wait()


class FakeRng:
    """An `Rng` whose bytes follow from its seed. Never for a real key."""

    def __init__(self, seed: str = "") -> None:
        self._seed = seed
        self._drawn = 0

    def token_bytes(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            self._drawn += 1
            data += hashlib.sha256(f"{self._seed}/{self._drawn}".encode()).digest()
        return data[:count]

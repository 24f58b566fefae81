"""The system's clock and randomness: the one place that asks for them."""

from __future__ import annotations

import secrets
import time


class SystemClock:
    """`Clock` over the system's wall and monotonic clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def mono(self) -> float:
        return time.monotonic()


class SystemRng:
    """`Rng` over the system's secret-grade generator."""

    def token_bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)

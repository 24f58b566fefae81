"""What core and engine take from outside: time and randomness. ``engine/clock.py`` has both."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Time as two numbers that must not be mixed up."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970 (UTC): for people and records. May jump."""
        ...

    def mono(self) -> float:
        """Seconds that only go forward, at the loop's rate: for durations and deadlines."""
        ...


class Rng(Protocol):
    """Randomness fit for secrets."""

    def token_bytes(self, count: int) -> bytes:
        """``count`` unpredictable bytes."""
        ...

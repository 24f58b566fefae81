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


class AgeIdentity(Protocol):
    """One X25519 identity of age. Its secret stays in it."""

    @property
    def recipient(self) -> str:
        """``age1…``: what others seal to."""
        ...

    def open(self, ciphertext: bytes) -> bytes:
        """The plaintext of binary age v1. Raises `ValueError` where it was not sealed to this identity."""
        ...


class Age(Protocol):
    """Sealing to age recipients (X25519), which draws randomness of its own."""

    def new_identity(self) -> AgeIdentity:
        """A fresh identity."""
        ...

    def seal(self, plaintext: bytes, recipient: str) -> bytes:
        """Binary age v1 to one recipient. Raises `ValueError` where ``recipient`` is none."""
        ...

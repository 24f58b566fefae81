"""The nonces of checks: made over the control socket, good for five minutes and for so many probes."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final

from relaydesk.core.hopcheck.asked import NONCE_BYTES, Asked, parse_asked
from relaydesk.core.ports import Clock, Rng

LIFE_S: Final = 300.0
# A check of four layers with three silences asks some fifty times.
MOST_USES: Final = 400
# Nonces at once; the oldest gives way.
MOST: Final = 8
# Answers under way at once: each holds a connection, a silence for two minutes.
MOST_OPEN: Final = 24


@dataclass(slots=True)
class _Nonce:
    text: str
    ends: float
    left: int = MOST_USES


class Nonces:
    """``open`` counts the answers under way."""

    def __init__(self, clock: Clock, rng: Rng) -> None:
        self._clock = clock
        self._rng = rng
        self._nonces: list[_Nonce] = []
        self.open = 0

    def make(self) -> tuple[str, int]:
        """A fresh one, and when it ends in wall-clock milliseconds."""
        self._forget()
        text = self._rng.token_bytes(NONCE_BYTES).hex()
        self._nonces.append(_Nonce(text, self._clock.mono() + LIFE_S))
        del self._nonces[:-MOST]
        return text, self._clock.wall_ms() + round(LIFE_S * 1000)

    def asked(self, value: str) -> Asked | None:
        """What a header asks for, None where its nonce is none of ours, used up or over."""
        asked = parse_asked(value)
        self._forget()
        if asked is None or self.open >= MOST_OPEN:
            return None
        # Every one is compared, in constant time: which of them fits is nobody's business.
        fits = [each for each in self._nonces if hmac.compare_digest(each.text, asked.nonce)]
        if not fits or fits[0].left <= 0:
            return None
        fits[0].left -= 1
        return asked

    def _forget(self) -> None:
        now = self._clock.mono()
        self._nonces = [each for each in self._nonces if each.ends > now]

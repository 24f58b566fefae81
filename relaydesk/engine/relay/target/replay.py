"""Reserves that have succeeded, by their reply key: none is taken twice (wire §4.3)."""

from __future__ import annotations

from relaydesk.core.ports import Clock
from relaydesk.core.relay.records.reserve import FUTURE_S, MAX_AGE_S, REPLAY_S


class ReplaySet:
    """Reply keys of the last minutes. What it holds is bounded by the tickets that can be issued meanwhile.

    A signature of a clock ahead of ours is good for longer than the wire's 90 s: so is what is remembered.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    def seen(self, recipient: str) -> bool:
        """Whether a reserve with this reply key has succeeded lately."""
        self._forget()
        return recipient in self._until

    def add(self, recipient: str, issued_at: int) -> None:
        """A reserve succeeded; ``issued_at`` is its signature's, in seconds since 1970."""
        left = issued_at + MAX_AGE_S + FUTURE_S + 1 - self._clock.wall_ms() / 1000
        self._until[recipient] = self._clock.mono() + max(REPLAY_S, left)

    def drop(self, recipient: str) -> None:
        """It failed after all."""
        self._until.pop(recipient, None)

    def _forget(self) -> None:
        now = self._clock.mono()
        if self._until and next(iter(self._until.values())) <= now:
            # Nearly in order: what stands behind a longer one waits for the next look.
            self._until = {key: until for key, until in self._until.items() if until > now}

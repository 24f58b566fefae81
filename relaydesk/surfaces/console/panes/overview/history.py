"""A rate over time: one sample for each step of the clock."""

from __future__ import annotations

from collections import deque

# The node's rate is one over ten seconds: more often there is nothing to see.
STEP_MS = 2000
# More samples than any terminal has room for are of no use.
KEPT = 480


class History:
    """Samples ``step_ms`` apart, oldest first; a step in which nothing was known is None."""

    def __init__(self, step_ms: int = STEP_MS, kept: int = KEPT) -> None:
        self._step_ms = step_ms
        self._values: deque[float | None] = deque(maxlen=kept)
        self._last: int | None = None

    @property
    def values(self) -> tuple[float | None, ...]:
        """What was seen."""
        return tuple(self._values)

    def add(self, now_ms: int, value: float | None) -> None:
        """The rate at a time; a second one in the same step replaces the first, unless it is not known.

        Steps left out are gaps. A clock set back begins a new step, since what was seen stays seen.
        """
        step = now_ms // self._step_ms
        if self._last is not None and step == self._last:
            if value is not None:
                self._values[-1] = value
            return
        missed = step - self._last - 1 if self._last is not None else 0
        self._values.extend([None] * max(0, min(missed, self._values.maxlen or 0)))
        self._values.append(value)
        self._last = step

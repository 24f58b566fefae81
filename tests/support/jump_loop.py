"""A loop whose time jumps to the next timer as soon as nothing else is to do."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Waits for nobody: what the loop would have slept is added to its time."""

    slept: Callable[[float], None]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everybody waits and nothing will happen")
        self.slept(timeout)
        return super().select(0)


class JumpLoop(asyncio.SelectorEventLoop):
    """For tests without I/O and threads: an hour of waiting takes no time, in the same order every time."""

    def __init__(self) -> None:
        self._now = 1000.0
        selector = _Selector()
        selector.slept = self._pass
        super().__init__(selector)

    def time(self) -> float:
        return self._now

    def _pass(self, seconds: float) -> None:
        # A hair more than asked for, so that a timer is due when the loop looks again.
        self._now += max(0.0, seconds) + (1e-6 if seconds > 0 else 0.0)


class LoopClock:
    """A `Clock` that follows the running loop's time."""

    def mono(self) -> float:
        return asyncio.get_running_loop().time()

    def wall_ms(self) -> int:
        return round(self.mono() * 1000)


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``main`` to its end in a `JumpLoop`."""
    with asyncio.Runner(loop_factory=JumpLoop) as runner:
        return runner.run(main())

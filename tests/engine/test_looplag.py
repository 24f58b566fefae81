from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest

from relaydesk.engine import looplag as module
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.looplag import Lag, LoopLag
from tests.support.clock import FakeClock


@contextlib.asynccontextmanager
async def _running(gauge: LoopLag) -> AsyncIterator[None]:
    task = asyncio.create_task(gauge.run())
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def test_nothing_measured_yet() -> None:
    assert LoopLag(FakeClock()).lag() == Lag(0.0, 0.0, 0.0)


async def test_a_blocked_loop_shows() -> None:
    gauge = LoopLag(SystemClock())
    async with _running(gauge):
        await asyncio.sleep(0.12)
        time.sleep(0.3)  # what must not happen
        await asyncio.sleep(0.15)
    lag = gauge.lag()
    assert 190 <= lag.max_ms <= 2000
    assert lag.p50_ms <= lag.p99_ms <= lag.max_ms


async def _sampled(monkeypatch: pytest.MonkeyPatch, lateness_ms: list[float]) -> Lag:
    """The gauge after these samples, on a clock of our own."""
    clock = FakeClock()
    gauge = LoopLag(clock)
    left = list(lateness_ms)

    async def overslept(seconds: float) -> None:
        if not left:
            raise asyncio.CancelledError
        clock.advance(seconds + left.pop(0) / 1000)

    monkeypatch.setattr(module.asyncio, "sleep", overslept)
    with contextlib.suppress(asyncio.CancelledError):
        await gauge.run()
    monkeypatch.undo()
    return gauge.lag()


async def test_percentiles(monkeypatch: pytest.MonkeyPatch) -> None:
    lag = await _sampled(monkeypatch, [1.0] * 60 + [5.0] * 39 + [80.0])
    assert lag == Lag(1.0, 5.0, 80.0)


async def test_one_stall_is_forgotten_after_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    lag = await _sampled(monkeypatch, [500.0] + [2.0] * module.WINDOW)
    assert lag == Lag(2.0, 2.0, 2.0)


async def test_the_worst_stall_since_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    gauge = LoopLag(clock)
    assert gauge.worst_since(0.0) == 0.0
    left = [40.0, 5.0, 20.0, 1.0]
    moments = []

    async def overslept(seconds: float) -> None:
        moments.append(clock.mono())
        if not left:
            clock.advance(seconds + 0.3)
            raise asyncio.CancelledError
        clock.advance(seconds + left.pop(0) / 1000)

    monkeypatch.setattr(module.asyncio, "sleep", overslept)
    with contextlib.suppress(asyncio.CancelledError):
        await gauge.run()
    monkeypatch.undo()
    # The last sleep has not ended by the gauge's account: its 300 ms are a stall that still lasts.
    assert gauge.worst_since(clock.mono()) == pytest.approx(300)
    gauge._due = clock.mono()
    assert gauge.worst_since(moments[0]) == pytest.approx(40)
    assert gauge.worst_since(moments[2]) == pytest.approx(20)
    assert gauge.worst_since(clock.mono()) == 0.0

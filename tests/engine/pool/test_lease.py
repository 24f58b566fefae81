from __future__ import annotations

import asyncio

import pytest

from relaydesk.core.errors import Fault
from relaydesk.engine.pool import lease as module
from relaydesk.engine.pool.lease import Lease
from relaydesk.engine.pool.slot_queue import SlotQueue
from relaydesk.engine.pool.starter import RunningEngine
from tests.support.scripted_engine import ScriptedEngine, answer

BROKEN = Fault("engine_failed", "the connection broke")
DIED = Fault("engine_failed", "the engine of tiny ended unexpectedly: it was killed")


def lease(*, far: bool = False) -> Lease:
    exited = None if far else asyncio.get_running_loop().create_future()
    engine = ScriptedEngine(lambda _: answer("x"))
    running = RunningEngine(engine, "alias", 1, "unix:/x", not far, exited, None, None)
    return Lease(7, running, SlotQueue(1, lambda: 1, lambda: None))


async def test_shows_whom_to_ask_and_how() -> None:
    one, far = lease(), lease(far=True)
    assert (one.run, one.alias, one.extensions, far.extensions) == (7, "alias", True, False)
    assert await one.engine.health()


async def test_the_first_reason_stays() -> None:
    one = lease()
    one.end(DIED)
    one.end(BROKEN)
    assert one.fault == DIED
    assert await one.why(BROKEN) == DIED


async def test_the_news_of_a_death_may_come_a_moment_later() -> None:
    one = lease()
    why = asyncio.create_task(one.why(BROKEN))
    await asyncio.sleep(0.01)
    one.end(DIED)
    assert await why == DIED


async def test_without_news_the_connection_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_NEWS_S", 0.01)
    assert await lease().why(BROKEN) == BROKEN


async def test_what_is_no_broken_engine_is_not_waited_for() -> None:
    overflow = Fault("context_length_exceeded", "too long")
    async with asyncio.timeout(0.1):
        one = lease()
        assert await one.why(overflow) == overflow
        assert await lease(far=True).why(BROKEN) == BROKEN
        one.end(DIED)
        assert await one.why(overflow) == overflow

from __future__ import annotations

import asyncio
import gc
import logging

import pytest

from relaydesk.engine.tasks import cancel_and_wait, finished, spawn


async def _value() -> int:
    return 7


async def test_a_task_has_its_name_and_result() -> None:
    task = spawn(_value(), name="a reader")
    assert task.get_name() == "a reader"
    assert await task == 7


async def test_cancel_waits_for_the_end() -> None:
    ended = False

    async def slow_to_leave() -> None:
        nonlocal ended
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.02)
            ended = True

    task = spawn(slow_to_leave(), name="x")
    await asyncio.sleep(0)
    await cancel_and_wait(task)
    assert ended
    assert task.cancelled()


async def test_cancelling_nothing_or_what_has_ended_is_fine() -> None:
    await cancel_and_wait(None)
    task = spawn(_value(), name="x")
    await task
    await cancel_and_wait(task)


async def test_a_failure_while_leaving_is_dropped_quietly(caplog: pytest.LogCaptureFixture) -> None:
    async def fail_to_leave() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("boom")

    task = spawn(fail_to_leave(), name="x")
    await asyncio.sleep(0)
    with caplog.at_level(logging.ERROR):
        await cancel_and_wait(task)
        del task
        gc.collect()
        await asyncio.sleep(0)
    assert caplog.text == ""


async def test_the_callers_own_cancellation_goes_through() -> None:
    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(0.05)
                return
            except asyncio.CancelledError:
                continue

    task = spawn(stubborn(), name="x")
    await asyncio.sleep(0)
    caller = spawn(cancel_and_wait(task), name="caller")
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await task


async def test_work_that_was_begun_is_finished_though_its_caller_is_cancelled() -> None:
    steps: list[str] = []
    go = asyncio.Event()

    async def work() -> None:
        steps.append("begun")
        await go.wait()
        steps.append("done")

    caller = spawn(finished(work()), name="caller")
    await asyncio.sleep(0.01)
    caller.cancel()
    await asyncio.sleep(0.01)
    assert not caller.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert steps == ["begun", "done"]


async def test_the_outcome_of_finished_work() -> None:
    assert await finished(_value()) == 7

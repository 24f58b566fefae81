from __future__ import annotations

import asyncio
import logging

import pytest

from relaydesk.core.commands import COMMANDS, FitModel, LoadModel, Outcome, Reload, Stop
from relaydesk.core.errors import PeerError
from relaydesk.engine.dispatch import Dispatcher


async def test_the_handler_of_the_kind_gets_the_command() -> None:
    dispatcher = Dispatcher()
    got: list[object] = []

    async def load(command: LoadModel) -> Outcome:
        got.append(command)
        return Outcome(ok=True, job="job_1")

    dispatcher.on(LoadModel, load)
    assert await dispatcher.call(LoadModel("m")) == Outcome(ok=True, job="job_1")
    assert got == [LoadModel("m")]
    assert dispatcher.handles(LoadModel)
    assert not dispatcher.handles(Stop)


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_command_without_handler_is_not_built(name: str) -> None:
    kind = COMMANDS[name]
    command = kind(**dict.fromkeys(kind.__struct_fields__, "x"))
    outcome = await Dispatcher().call(command)
    assert not outcome.ok
    assert outcome.fault is not None
    assert outcome.fault.code == "not_built"
    assert name in outcome.fault.message


async def test_faults_are_in_the_outcome() -> None:
    async def fit(command: FitModel) -> Outcome:
        raise PeerError("engine_failed", "the engine ended", "load it again", param="name")

    dispatcher = Dispatcher()
    dispatcher.on(FitModel, fit)
    outcome = await dispatcher.call(FitModel("m"))
    assert outcome.fault is not None
    assert (outcome.fault.code, outcome.fault.message, outcome.fault.param) == (
        "engine_failed",
        "the engine ended",
        "name",
    )


async def test_a_bug_is_logged_and_told_without_details(caplog: pytest.LogCaptureFixture) -> None:
    async def reload(command: Reload) -> Outcome:
        raise KeyError("sk-internal-detail")

    dispatcher = Dispatcher()
    dispatcher.on(Reload, reload)
    with caplog.at_level(logging.ERROR):
        outcome = await dispatcher.call(Reload())
    assert outcome.fault is not None
    assert outcome.fault.code == "internal_error"
    assert "sk-internal-detail" not in outcome.fault.message
    assert "reload failed" in caplog.text


async def test_a_cancelled_command_is_cancelled() -> None:
    async def stop(command: Stop) -> Outcome:
        await asyncio.Event().wait()
        raise AssertionError

    dispatcher = Dispatcher()
    dispatcher.on(Stop, stop)
    task = asyncio.create_task(dispatcher.call(Stop()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_one_handler_a_kind() -> None:
    async def load(command: LoadModel) -> Outcome:
        return Outcome(ok=True)

    dispatcher = Dispatcher()
    dispatcher.on(LoadModel, load)
    with pytest.raises(ValueError, match="load-model"):
        dispatcher.on(LoadModel, load)

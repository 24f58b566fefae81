from __future__ import annotations

import pytest

from relaydesk.core.commands import Access, FitModel, LoadModel, Outcome
from relaydesk.core.view.sections import HealthView
from relaydesk.engine.bus import Bus
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.local import LocalNode
from relaydesk.engine.projector import Projector
from relaydesk.engine.watch import WatchHub
from tests.support.clock import FakeClock


@pytest.fixture
def called() -> list[object]:
    return []


@pytest.fixture
def node(called: list[object]) -> LocalNode:
    async def note(command: LoadModel | FitModel) -> Outcome:
        called.append(command)
        return Outcome(ok=True)

    dispatcher = Dispatcher()
    dispatcher.on(LoadModel, note)
    dispatcher.on(FitModel, note)
    projector = Projector(FakeClock(), {"health": lambda: HealthView(in_flight=2)})
    return LocalNode(projector, WatchHub(Bus(), projector), dispatcher)


async def test_snapshot_is_built_now(node: LocalNode) -> None:
    view = await node.snapshot()
    assert view.health.value == HealthView(in_flight=2)
    assert view.models.state == "loading"


async def test_read_only_refuses_changes_before_they_reach_a_handler(
    node: LocalNode, called: list[object]
) -> None:
    assert node.access is Access.WRITE
    looking = node.read_only()
    assert looking.access is Access.READ
    outcome = await looking.call(LoadModel("m"))
    assert outcome.fault is not None
    assert outcome.fault.code == "refused"
    assert called == []
    assert (await looking.call(FitModel("m"))).ok
    assert (await node.call(LoadModel("m"))).ok
    assert called == [FitModel("m"), LoadModel("m")]

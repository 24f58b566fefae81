"""A running node's own answers as findings."""

from __future__ import annotations

import pytest

from relaydesk.core.errors import Fault
from relaydesk.core.text import SafeText
from relaydesk.core.view.network import NetworkView
from relaydesk.core.view.sections import FaultView, MetaView, ModelView
from relaydesk.engine.doctor.running import RunningNode, check_answer, check_models, check_network

META = MetaView("shed", "0.1.0", 12, 0, "ready", ("https://localhost:8383", "https://shed:8383"))


@pytest.mark.parametrize(
    ("node", "level", "says"),
    [
        (
            RunningNode(meta=META),
            "ok",
            "process 12 answers and listens on https://localhost:8383, https://shed",
        ),
        (RunningNode(), "warn", "still starting"),
        (
            RunningNode(fault=Fault("no_node", "the node does not answer", "end it")),
            "fail",
            "does not answer",
        ),
        (RunningNode(fault=Fault("refused", "it belongs to another user", "sudo")), "warn", "another user"),
    ],
)
def test_answer(node: RunningNode, level: str, says: str) -> None:
    found = check_answer(node)
    assert (found.level, says in found.message) == (level, True)


def row(name: str, state: str, **more: object) -> ModelView:
    return ModelView(name, state, state != "unavailable", SafeText("too large"), "host", 1, **more)  # type: ignore[arg-type]


def test_models() -> None:
    assert "pull smollm2" in check_models(RunningNode()).hint
    good = check_models(RunningNode(models=(row("a", "warm"), row("b", "cold"))))
    assert (good.level, good.message, good.hint) == ("ok", "2 registered, 1 loaded", "")
    bad = check_models(RunningNode(models=(row("a", "unavailable"), row("b", "unavailable"))))
    assert bad.message == "2 registered, 0 loaded; a cannot be used (and 1 more): too large"
    assert bad.hint == "`relaydesk model fit a` says what would help"
    fault = FaultView("engine_failed", SafeText("no answer"), SafeText("start it"))
    far = check_models(RunningNode(models=(row("far", "unavailable", kind="url", fault=fault),)))
    assert (far.message.endswith("no answer"), far.hint) == (True, "start it")


@pytest.mark.parametrize(
    ("view", "level", "says"),
    [
        (NetworkView(on=True, problem=SafeText("no certificate")), "fail", "stays closed: no certificate"),
        (NetworkView(on=True, unpublished=SafeText("no public URL")), "ok", "no public URL"),
        (
            NetworkView(
                on=True, public_url=SafeText("https://n.example"), unpublished=SafeText("not admitted")
            ),
            "warn",
            "no directory lists this node: not admitted",
        ),
        (NetworkView(on=True, public_url=SafeText("https://n.example")), "ok", "as https://n.example"),
    ],
)
def test_network(view: NetworkView, level: str, says: str) -> None:
    found = check_network(view)
    assert (found.level, says in found.message) == (level, True)

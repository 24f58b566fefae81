"""`relaydesk doctor`: one line for each check, with words and the next step, and an honest exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from relaydesk.engine.doctor.finding import Finding


@pytest.fixture(autouse=True)
def quick_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's own check starts a child with it; tests/engine/doctor has that."""
    found = [Finding("engine", "ok", "starts"), Finding("GPU", "warn", "is idle", "install this")]
    monkeypatch.setattr("relaydesk.engine.doctor.report.check_engine", lambda: found)
    monkeypatch.setenv("RELAY_LISTEN", "127.0.0.1:0")


def test_a_good_machine(cli: Any) -> None:
    result = cli("doctor")
    assert (result.code, result.err) == (0, "")
    assert "● ok    Python           3." in result.out
    assert "▲ warn  GPU              is idle\n         next: install this\n" in result.out
    names = [line.split()[2] for line in result.out.splitlines() if "next:" not in line]
    assert names == [
        "Python",
        "settings",
        "clock",
        "memory",
        "state",
        "model",
        "node",
        "port",
        "engine",
        "GPU",
    ]


def test_a_node_that_runs(cli: Any, node: Any) -> None:
    assert "a node is running: see `relaydesk status`" in cli("doctor").out


def test_what_will_not_work_is_code_1(cli: Any, state_dir: Path) -> None:
    state_dir.write_text("")
    result = cli("doctor", "--json")
    assert (result.code, result.json["ok"]) == (1, False)
    finding = next(row for row in result.json["findings"] if row["level"] == "fail")
    assert finding["name"] == "state directory"
    assert "is not a directory" in finding["message"]
    assert finding["hint"]


def test_settings_that_cannot_be_read_do_not_hide_the_rest(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_LISTEN", "nowhere")
    result = cli("doctor")
    assert result.code == 1
    assert "✗ fail  settings         RELAY_LISTEN is nowhere" in result.out
    assert "engine" in result.out

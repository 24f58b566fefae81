"""`relaydesk doctor`: one line for each check, with words and the next step, and an honest exit code."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relaydesk.config.load import load
from relaydesk.config.show import shown
from relaydesk.core.commands import ShowConfig
from relaydesk.core.text import SafeText
from relaydesk.core.view.sections import MemoryView, ModelsView, ModelView
from relaydesk.engine.doctor.finding import Finding
from relaydesk.store.lock import StateLock


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


def test_a_node_that_runs_is_asked(cli: Any, node: Any, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    models = tmp_path / "big-disk"
    node.views["meta"] = msgspec.structs.replace(node.views["meta"], state_dir=str(elsewhere))
    big = ModelView("big", "unavailable", False, SafeText("it is too large"), "", 0)
    warm = ModelView("tiny", "warm", True, SafeText(""), "host", 99)
    node.views["models"] = ModelsView(MemoryView("ram", 1, 1), (big, warm))
    rows = shown(load(env={"RELAY_MODEL_DIR": str(models), "RELAY_LISTEN": "127.0.0.1:1"}))
    node.answer(ShowConfig, list(rows))
    found = {row["name"]: row for row in cli("doctor", "--json").json["findings"]}
    assert "as the running node has them" in found["settings"]["message"]
    assert found["node"]["message"] == "process 4711 answers and listens on https://0.0.0.0:8383"
    assert found["state directory"]["message"] == f"{elsewhere} is ours and writable"
    assert str(models) in found["model disk"]["message"]
    assert "127.0.0.1:1" in found["port"]["message"]
    assert found["models"]["level"] == "warn"
    assert found["models"]["message"] == "2 registered, 1 loaded; big cannot be used: it is too large"
    assert found["models"]["hint"] == "`relaydesk model fit big` says what would help"


def test_a_node_that_says_nothing_is_a_finding(
    cli: Any, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relaydesk.surfaces.cli.attach.READ_S", 0.2)
    state_dir.mkdir(mode=0o700)
    with StateLock(state_dir), socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(state_dir / "control.sock"))
        deaf.listen(8)
        result = cli("doctor")
    assert result.code == 1
    assert "✗ fail  node             the node (process" in result.out
    assert "does not answer within 0.2 s" in result.out


def test_every_line_fits_80_columns(cli: Any, node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = ModelView("big", "unavailable", False, SafeText("too large " * 20), "", 0)
    node.views["models"] = ModelsView(MemoryView("ram", 1, 1), (long,))
    lines = cli("doctor").out.splitlines()
    # A path is not broken.
    assert max(len(line) for line in lines if "/" not in line) <= 80


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

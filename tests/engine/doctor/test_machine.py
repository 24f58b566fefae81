"""Checks of the machine, each against the real thing in its good and its bad state."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path

import pytest

from relaydesk.config.listen import Listen
from relaydesk.config.paths import Paths
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.doctor import machine


class At:
    """A clock that stands."""

    def __init__(self, wall_ms: int) -> None:
        self._wall_ms = wall_ms

    def wall_ms(self) -> int:
        return self._wall_ms

    def mono(self) -> float:
        return 0.0


def test_state_directory(tmp_path: Path) -> None:
    state = tmp_path / "a" / "state"
    assert machine.check_state(state).message == f"{state} will be made by the first start"
    state.mkdir(parents=True, mode=0o700)
    assert machine.check_state(state).level == "ok"
    state.chmod(0o770)
    finding = machine.check_state(state)
    assert (finding.level, finding.hint) == ("fail", f"`chmod 700 {state}`")
    (tmp_path / "file").touch()
    assert "is not a directory" in machine.check_state(tmp_path / "file").message
    assert "cannot be read" in machine.check_state(tmp_path / "file" / "below").message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_state_directory_of_another_user(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, -1)
    finding = machine.check_state(tmp_path)
    assert (finding.level, "belongs to user 12345" in finding.message) == ("fail", True)


def test_disk_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.disk_usage(tmp_path)
    asked = []

    def usage(free: int) -> None:
        monkeypatch.setattr(
            "shutil.disk_usage", lambda place: asked.append(place) or real._replace(free=free)
        )

    for free, level in ((6 << 30, "ok"), (1 << 30, "warn"), (10 << 20, "fail")):
        usage(free)
        assert machine.check_disk(tmp_path / "models" / "new").level == level
    assert set(asked) == {tmp_path}


def test_port() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        finding = machine.check_port(Listen("127.0.0.1", port), node_runs=False)
        assert (finding.level, finding.hint) == ("fail", "end it, or set RELAY_LISTEN")
        # Every interface contains that one.
        assert machine.check_port(Listen("", port), node_runs=False).level == "fail"
        assert machine.check_port(Listen("127.0.0.1", port), node_runs=True).level == "ok"
    assert (
        machine.check_port(Listen("127.0.0.1", port), node_runs=False).message == f"127.0.0.1:{port} is free"
    )
    assert machine.check_port(Listen("", 0), node_runs=False).level == "ok"
    assert "cannot be used" in machine.check_port(Listen("192.0.2.1", 0), node_runs=False).message


def test_socket(tmp_path: Path) -> None:
    paths = Paths(tmp_path, tmp_path, tmp_path / "control.sock", tmp_path)
    assert "starts one" in machine.check_socket(paths).message
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(paths.socket))
    assert "left by one that ended" in machine.check_socket(paths).message
    paths.socket.unlink()
    paths.socket.touch()
    assert machine.check_socket(paths).level == "fail"


def test_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_TIMESYNC", tmp_path / "none")
    assert machine.check_clock(SystemClock()).level == "ok"
    assert machine.check_clock(At(0)).level == "fail"
    assert machine.check_clock(At(4_200_000_000_000)).level == "fail"
    monkeypatch.setattr(machine, "_TIMESYNC", tmp_path)
    assert machine.check_clock(SystemClock()).hint == "`timedatectl set-ntp true`"
    (tmp_path / "synchronized").touch()
    assert machine.check_clock(SystemClock()).level == "ok"


def test_python_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.check_python().level == "ok"
    assert "GiB of RAM are free" in machine.check_memory().message
    monkeypatch.setattr(sys, "version_info", (3, 10, 1, "final", 0))
    assert machine.check_python().level == "fail"

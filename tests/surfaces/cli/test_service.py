"""`relaydesk service`: what is printed, written and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from relaydesk.service.unit import MARK


@pytest.fixture
def system_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "etc-systemd"
    monkeypatch.setattr("relaydesk.service.install.SYSTEM_DIR", directory)
    return directory


def test_print_is_what_install_writes(cli: Any, system_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    printed = cli("service", "print")
    assert printed.code == 0
    assert printed.out.startswith(MARK)
    done = cli("service", "install")
    assert done.code == 0
    assert (system_dir / "relaydesk.service").read_text() == printed.out
    assert "systemctl daemon-reload\n  systemctl enable --now relaydesk\n" in done.out
    assert "there already" in cli("service", "install").out


def test_settings_reach_the_unit(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_DRAIN_TIMEOUT", "2m")
    monkeypatch.setenv("RELAY_LISTEN", ":443")
    out = cli("service", "print").out
    assert "TimeoutStopSec=135\n" in out
    assert "AmbientCapabilities=CAP_NET_BIND_SERVICE\n" in out


def test_a_users_own(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "config" / "systemd" / "user" / "relaydesk.service"
    done = cli("service", "install", "--user")
    assert done.code == 0
    assert path.read_text() == cli("service", "print", "--user").out
    assert "systemctl --user enable --now relaydesk" in done.out
    assert "enable-linger" in done.out
    gone = cli("service", "uninstall", "--user")
    assert (gone.code, path.exists()) == (0, False)
    assert "systemctl --user disable --now relaydesk" in gone.out
    assert "nothing to remove" in cli("service", "uninstall", "--user").out


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_the_machines_needs_root(
    cli: Any, system_dir: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    result = cli("service", verb)
    assert (result.code, system_dir.exists()) == (4, False)
    assert f"use `sudo relaydesk service {verb}`, or add `--user`" in result.err


@pytest.fixture
def nothing_is_temporary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories of tests are below /tmp."""
    monkeypatch.setattr("relaydesk.surfaces.cli.service._TEMPORARY", ())


def test_a_program_the_services_user_cannot_reach(
    cli: Any, system_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_is_temporary: None
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    tmp_path.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    for verb in ("install", "print"):
        err = cli("service", verb).err
        assert "warning: the service's own user cannot enter /" in err
        assert "or use `relaydesk service install --user`" in err
    assert cli("service", "print", "--user").err == ""
    monkeypatch.setattr("sys.executable", "/usr/bin/env")
    assert cli("service", "install").err == ""


def test_an_interpreter_behind_a_link_is_looked_at_as_well(
    cli: Any, system_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_is_temporary: None
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    real, link = tmp_path / "closed" / "python", tmp_path / "open" / "python"
    for each in (real, link):
        each.parent.mkdir()
    real.touch()
    link.symlink_to(real)
    # Directories above those of the tests may be closed: only the one of this test is in question here.
    monkeypatch.setattr(
        "relaydesk.surfaces.cli.service._closed_directory",
        lambda program: real.parent if real.parent in program.parents else None,
    )
    monkeypatch.setattr("sys.executable", str(link))
    assert f"cannot enter {real.parent} to start {real}" in cli("service", "install").err


def test_a_program_in_tmp_is_warned_of(cli: Any, system_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("sys.executable", "/tmp/venv/bin/python")
    assert "is in /tmp, which is another one for the service" in cli("service", "install").err
    assert "is in /tmp, which is emptied at each boot" in cli("service", "install", "--user").err

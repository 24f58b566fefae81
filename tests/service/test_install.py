"""Writing and removing units: whole or not at all, and never somebody else's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.service.install import Place, install, place, uninstall
from relaydesk.service.unit import MARK


@pytest.fixture
def where(tmp_path: Path) -> Place:
    return Place(tmp_path / "systemd" / "user", "systemctl --user", needs_root=False)


def test_written_once_and_replaced(where: Place) -> None:
    assert install(where, f"{MARK}\none\n")
    assert not install(where, f"{MARK}\none\n")
    assert install(where, f"{MARK}\ntwo\n")
    assert where.path.read_text() == f"{MARK}\ntwo\n"
    assert where.path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(where.directory) == ["relaydesk.service"]


def test_a_foreign_unit_is_left_alone(where: Place) -> None:
    where.directory.mkdir(parents=True)
    where.path.write_text("[Service]\nExecStart=/their/own\n")
    for change in (lambda: install(where, MARK), lambda: uninstall(where)):
        with pytest.raises(LocalError, match="was not written by relaydesk"):
            change()
    assert "their/own" in where.path.read_text()


def test_removed_once(where: Place) -> None:
    assert not uninstall(where)
    install(where, MARK)
    assert uninstall(where)
    assert not where.path.exists()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvError, match="cannot") as caught:
        install(Place(tmp_path / "file" / "user", "systemctl", needs_root=False), MARK)
    assert caught.value.fault.code == "storage_failed"


def test_no_systemd_no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(LocalError, match="on Linux only"):
        place(user=True)


def test_a_relative_xdg_directory_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert place(user=True).directory == tmp_path / ".config" / "systemd" / "user"

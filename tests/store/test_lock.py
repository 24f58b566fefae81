from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError
from relaydesk.store.lock import StateLock, holder

HOLDER = """
import sys, pathlib
from relaydesk.store.lock import holder, StateLock
StateLock(pathlib.Path(sys.argv[1])).acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_made_and_taken(tmp_path: Path) -> None:
    state = tmp_path / "deep" / "state"
    with StateLock(state) as lock:
        assert lock.held
        assert (state / "lock").read_text() == f"{os.getpid()}\n"
        assert stat.S_IMODE((state / "lock").stat().st_mode) == 0o600
        lock.acquire()
    assert not lock.held
    with StateLock(state):
        pass
    lock.release()


def test_held_by_another_process_until_it_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(EnvError) as caught:
            StateLock(tmp_path).acquire()
        assert caught.value.fault.code == "state_locked"
        assert f"process {child.pid}" in caught.value.fault.message
        assert "relaydesk console" in caught.value.fault.hint
        assert f"kill {child.pid}" in caught.value.fault.hint
        child.kill()
        child.wait()
    with StateLock(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_held_before_the_pid_is_written(tmp_path: Path) -> None:
    with StateLock(tmp_path):
        (tmp_path / "lock").write_text("")
        with pytest.raises(EnvError, match="in use by another process"):
            StateLock(tmp_path).acquire()


def test_a_child_does_not_inherit_it(tmp_path: Path) -> None:
    lock = StateLock(tmp_path)
    lock.acquire()
    command = [sys.executable, "-c", "print('up', flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        lock.release()
        with StateLock(tmp_path):
            pass
        child.kill()


def test_places_that_cannot_be(tmp_path: Path, small_disk: object) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(EnvError, match="not a directory"):
        StateLock(tmp_path / "file").acquire()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(EnvError, match="chmod 700"):
        StateLock(tmp_path / "open").acquire()
    (tmp_path / "link").mkdir(mode=0o700)
    (tmp_path / "link" / "lock").symlink_to(tmp_path / "file")
    with pytest.raises(EnvError, match="cannot open the lock"):
        StateLock(tmp_path / "link").acquire()
    assert (tmp_path / "file").read_text() == "x"
    small_disk.read_only()  # type: ignore[attr-defined]
    with pytest.raises(EnvError, match="read-only file system") as caught:
        StateLock(small_disk.path).acquire()  # type: ignore[attr-defined]
    assert caught.value.fault.code == "storage_failed"


def test_the_holder_is_told_from_a_number_left_behind(tmp_path: Path) -> None:
    assert holder(tmp_path) is None
    with StateLock(tmp_path):
        assert holder(tmp_path) == os.getpid()
    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    assert holder(tmp_path) is None

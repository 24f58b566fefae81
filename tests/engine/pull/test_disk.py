from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError
from relaydesk.engine.pull.disk import in_thread, make_temp, need_room, storage_faults, sweep_temp


def test_only_folders_of_dead_processes_are_swept(tmp_path: Path) -> None:
    child = subprocess.Popen(["/bin/true"])
    child.wait()
    mine = make_temp(tmp_path)
    assert (mine.stat().st_mode & 0o777) == 0o700
    assert make_temp(tmp_path) != mine
    dead = tmp_path / f".pull-{child.pid}-0"
    dead.mkdir()
    (dead / "half").write_text("x")
    kept = [tmp_path / ".pull-x", tmp_path / ".pull-1-0", tmp_path / "models"]
    for folder in kept:
        folder.mkdir()
    target = tmp_path / "elsewhere"
    target.mkdir()
    link = tmp_path / f".pull-{child.pid}-1"
    link.symlink_to(target)
    sweep_temp(tmp_path)
    assert not dead.exists()
    assert mine.exists()
    assert target.exists()
    assert all(folder.exists() for folder in kept)


def test_room(tmp_path: Path) -> None:
    need_room(tmp_path, 1)
    with pytest.raises(EnvError, match="MiB free and the model needs"):
        need_room(tmp_path, 1 << 60)


def test_the_systems_complaint_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(EnvError) as caught, storage_faults(tmp_path / "x"):
        os.mkdir(tmp_path / "no" / "x")
    assert caught.value.fault.message == f"cannot write {tmp_path / 'x'}: no such file or directory"


async def test_a_cancelled_caller_waits_for_its_thread() -> None:
    stop, ended = threading.Event(), threading.Event()

    def work() -> None:
        stop.wait(10)
        time.sleep(0.1)
        ended.set()

    task = asyncio.ensure_future(in_thread(work, stop))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stop.is_set()
    assert ended.is_set()

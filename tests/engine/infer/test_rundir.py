from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil
import pytest

from relaydesk.core.errors import EnvError
from relaydesk.engine.infer.rundir import (
    WorkerRecord,
    forget_worker,
    private_directory,
    reap_strays,
    record_worker,
    socket_path,
    start_mark,
)


@contextmanager
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_the_directory_is_made_private_even_where_it_was_open(runtime_dir: Path) -> None:
    runtime_dir.mkdir(mode=0o755)
    runtime_dir.chmod(0o755)
    private_directory(runtime_dir)
    assert stat.S_IMODE(runtime_dir.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["file", "link", "below a file"])
def test_what_is_no_directory_of_ours_is_refused(runtime_dir: Path, kind: str) -> None:
    target = runtime_dir.parent / "target"
    if kind == "link":
        target.mkdir()
        runtime_dir.symlink_to(target)
    else:
        runtime_dir.write_text("")
    with pytest.raises(EnvError) as caught:
        private_directory(runtime_dir / "x" if kind == "below a file" else runtime_dir)
    assert caught.value.fault.code == "storage_failed"
    assert caught.value.fault.hint


def test_a_path_too_long_for_a_socket_is_refused_by_name() -> None:
    assert socket_path(Path("/run/x"), "ab") == "/run/x/ab.sock"
    with pytest.raises(EnvError, match="longer than 100 bytes"):
        socket_path(Path("/" + "d" * 95), "ab")


def test_a_stray_is_ended_and_its_files_removed(runtime_dir: Path) -> None:
    private_directory(runtime_dir)
    with sleeper() as process, socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(runtime_dir / "a.sock"))
        record_worker(runtime_dir, "a", process.pid)
        assert reap_strays(runtime_dir) == 1
        assert not psutil.pid_exists(process.pid)
    assert list(runtime_dir.iterdir()) == []


def test_another_process_with_the_recorded_number_is_left_alone(runtime_dir: Path) -> None:
    private_directory(runtime_dir)
    with sleeper() as process:
        record = WorkerRecord(process.pid, start_mark(os.getpid()))
        (runtime_dir / "a.pid").write_bytes(msgspec.json.encode(record))
        (runtime_dir / "b.pid").write_bytes(b"{}")
        (runtime_dir / "c.pid").write_bytes(msgspec.json.encode(WorkerRecord(-1, "x")))
        (runtime_dir / "d.pid").write_bytes(msgspec.json.encode(WorkerRecord(process.pid, "")))
        assert reap_strays(runtime_dir) == 0
        assert process.poll() is None
    assert list(runtime_dir.iterdir()) == []


def test_marks_tell_processes_apart() -> None:
    with sleeper() as process:
        assert start_mark(process.pid) == start_mark(process.pid) != start_mark(os.getpid())
    assert start_mark(process.pid) == ""


def test_forgetting_removes_what_is_there_and_minds_nothing(runtime_dir: Path) -> None:
    private_directory(runtime_dir)
    record_worker(runtime_dir, "a", os.getpid())
    forget_worker(runtime_dir, "a")
    forget_worker(runtime_dir, "a")
    assert list(runtime_dir.iterdir()) == []
    assert reap_strays(runtime_dir / "absent") == 0

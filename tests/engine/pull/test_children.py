from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from relaydesk.engine.pull.children import TETHER, TookTooLong, ask_child, child_environment, run_tethered

ECHO = """
import sys
line = sys.stdin.readline()
sys.stdout.write(line.upper()); sys.stderr.write("said " + "x" * {noise}); sys.stdout.write("y" * {more})
"""


# What has ended is looked up there: nothing else tells a process of a stranger apart from a zombie.
pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")


def gone(pid: int, within_s: float = 2.0) -> bool:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_only_what_installers_need_is_passed() -> None:
    environ = {
        "PATH": "/bin",
        "PIP_INDEX_URL": "i",
        "https_proxy": "p",
        "HF_TOKEN": "secret",
        "HF_ENDPOINT": "e",
        "RELAY_API_KEY": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "LD_PRELOAD": "x",
    }
    assert child_environment(environ) == {"PATH": "/bin", "PIP_INDEX_URL": "i", "https_proxy": "p"}
    also = child_environment(environ, re.compile(r"HF_(?!TOKEN$)[A-Z_]+"))
    assert set(also) == {"PATH", "PIP_INDEX_URL", "https_proxy", "HF_ENDPOINT"}


async def test_a_program_of_ours_is_asked_and_answers(tmp_path: Path) -> None:
    program = tmp_path / "echo.py"
    program.write_text(ECHO.format(noise=100_000, more=0))
    ended = await ask_child(program, b"hello", env={}, timeout_s=10, limit=100)
    assert (ended.code, ended.output) == (0, b"HELLO\n")
    assert len(ended.errors) == 16 << 10


async def test_an_answer_without_end_is_cut(tmp_path: Path) -> None:
    program = tmp_path / "echo.py"
    program.write_text("import sys\nwhile True: sys.stdout.write('y' * 10000)")
    ended = await ask_child(program, b"hello", env={}, timeout_s=10, limit=100_000)
    assert (ended.code, ended.output) == (1, b"")
    assert "more than 100000 bytes" in ended.errors


async def test_a_child_that_hangs_is_ended(tmp_path: Path) -> None:
    program = tmp_path / "hang.py"
    program.write_text(
        f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)"
    )
    with pytest.raises(TookTooLong):
        await ask_child(program, b"", env={}, timeout_s=0.5, limit=10)
    assert gone(int((tmp_path / "pid").read_text()))


async def test_a_command_and_its_children_are_ended_together(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    ticks: list[int] = []
    command = ["/bin/sh", "-c", f"sleep 60 & echo $! > {pid}; wait"]
    with pytest.raises(TookTooLong):
        await run_tethered(command, env=os.environ, timeout_s=1.0, tick=lambda: ticks.append(1))
    assert ticks
    assert gone(int(pid.read_text()))


async def test_how_a_command_ended() -> None:
    command = ["/bin/sh", "-c", "echo why >&2; exit 3"]
    ended = await run_tethered(command, env=os.environ, timeout_s=10, tick=lambda: None)
    assert (ended.code, ended.errors) == (3, "why\n")
    command = ["/bin/sh", "-c", "kill -9 $$"]
    assert (await run_tethered(command, env=os.environ, timeout_s=10, tick=lambda: None)).code == 137


async def test_a_cancelled_caller_takes_the_command_along(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    command = ["/bin/sh", "-c", f"echo $$ > {pid}; exec sleep 60"]
    task = asyncio.ensure_future(run_tethered(command, env=os.environ, timeout_s=60, tick=lambda: None))
    while not pid.exists() or not pid.read_text():
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gone(int(pid.read_text()))


def test_a_killed_parent_takes_the_command_along(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    program = (
        "import subprocess, sys, time\n"
        "subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, start_new_session=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-P", str(TETHER), "/bin/sh", "-c", f"echo $$ > {pid}; exec sleep 60"]
    parent = subprocess.Popen([sys.executable, "-c", program, *command])
    try:
        until = time.monotonic() + 10
        while not (pid.exists() and pid.read_text()) and time.monotonic() < until:
            time.sleep(0.02)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert gone(int(pid.read_text()))

"""Processes that must not outlive their parent, ended the hard way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

ROOT = str(Path(__file__).parents[4])
# A node that starts a worker through a pipe, prints the worker's number and waits.
NODE = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE)
print(child.pid, flush=True)
time.sleep(60)
"""
TIED = """
import os, sys, time
from relaydesk.engine.infer.child import guard
{setup}
print("tied", flush=True)
{hold}
"""
BOTH = "guard.die_with_parent(os.getppid(), 0)"
# Each tie alone. Linux: the kernel's signal. Elsewhere: a forked reader of the pipe, tried here as well.
SIGNAL = "guard._set_death_signal()"
FORK = "guard.guard_by_fork(0)"
SLEEP = "time.sleep(60)"
# Never gives the interpreter lock back, as the engine's constructor does.
LOCK = "import ctypes; ctypes.PyDLL(None).sleep(60)"


def gone(pid: int, within_s: float) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:  # an init that reaps nobody
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal is Linux's")
@pytest.mark.parametrize("setup", [BOTH, SIGNAL, FORK])
@pytest.mark.parametrize("hold", [SLEEP, LOCK], ids=["idle", "loading"])
def test_kill_9_of_the_node_ends_its_worker_within_a_second(setup: str, hold: str) -> None:
    node = subprocess.Popen(
        [sys.executable, "-c", NODE, TIED.format(setup=setup, hold=hold)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ROOT},
    )
    assert node.stdout is not None
    worker = int(node.stdout.readline())
    assert node.stdout.readline() == "tied\n"
    others = [child.pid for child in psutil.Process(worker).children()]
    assert len(others) == (1 if setup == FORK else 0)
    node.kill()
    node.wait()
    assert gone(worker, 1.0)
    assert all(gone(pid, 1.0) for pid in others)
    node.stdout.close()


def test_the_forked_guard_ends_with_its_worker() -> None:
    worker = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from relaydesk.engine.infer.child import guard\nprint(guard.guard_by_fork(0))",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ROOT},
    )
    assert worker.stdout is not None
    assert worker.stdin is not None
    guard = int(worker.stdout.readline())
    worker.wait()
    worker.stdin.close()  # as the node does once it has seen the exit
    assert gone(guard, 1.0)
    worker.stdout.close()


def test_a_worker_that_reads_the_wrong_parent_ends_at_once() -> None:
    code = "from relaydesk.engine.infer.child import guard\nguard.die_with_parent(1 << 22, 0)\nprint('lives')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        capture_output=False,
        stdout=subprocess.PIPE,
        check=False,
        env={**os.environ, "PYTHONPATH": ROOT},
    )
    assert (done.returncode, done.stdout) == (1, b"")


def test_locked_down_means_private_files_and_no_core() -> None:
    code = (
        "import os, resource\nfrom relaydesk.engine.infer.child import guard\nguard.lock_down()\n"
        "print(oct(os.umask(0)), resource.getrlimit(resource.RLIMIT_CORE))"
    )
    env = {**os.environ, "PYTHONPATH": ROOT}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout == "0o77 (0, 0)\n"

"""`relaydesk model pull` and `load`: following a job to its end, and stopping it."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from relaydesk.core.commands import CancelJob, LoadModel, Outcome, PullModel
from relaydesk.core.errors import PeerError
from relaydesk.core.text import SafeText
from relaydesk.core.view.sections import JobView
from relaydesk.engine.jobs import Job
from relaydesk.surfaces.cli.follow import progress_line

Work = Callable[[Job], Awaitable[None]]


def runs(node: Any, kind: type[Any], job_kind: str, work: Work) -> None:
    """Let a command start ``work`` as a job, as the node does."""

    async def start(command: Any) -> Outcome:
        subject = getattr(command, "reference", None) or command.name
        return Outcome(ok=True, job=node.jobs.start(job_kind, subject, work))

    node.answers[kind] = start


async def three_steps(job: Job) -> None:
    for done in (10, 50, 100):
        job.progress(done << 20, 100 << 20, 5 << 20)
        await asyncio.sleep(0.05)
    job.progress(100 << 20, 100 << 20, 0, "registered as mine")


async def never_ends(job: Job) -> None:
    job.progress(1 << 20, 0)
    await asyncio.Event().wait()


async def fails(job: Job) -> None:
    raise PeerError("pull_failed", "the Hub has no such file", "check the name")


def test_pull_follows_to_the_end(cli: Any, node: Any) -> None:
    runs(node, PullModel, "pull", three_steps)
    result = cli("model", "pull", "HF:owner/repo:Q4_0", "--name", "mine", "--ctx", "1024", "--preload")
    assert result.code == 0
    assert result.out == "hf:owner/repo:Q4_0: registered as mine\n"
    assert node.seen == [PullModel("hf:owner/repo:Q4_0", "mine", {"ctx": 1024, "preload": True})]
    assert "hf:owner/repo:Q4_0   10%  10.0 MiB of 100.0 MiB  5.0 MiB/s  18 s left\n" in result.err


def test_a_job_that_ended_before_anybody_looked(cli: Any, node: Any) -> None:
    async def at_once(_job: Job) -> None:
        pass

    runs(node, LoadModel, "load", at_once)
    result = cli("model", "load", "tiny")
    assert (result.code, result.out) == (0, "tiny is warm\n")


def test_a_job_that_fails(cli: Any, node: Any) -> None:
    runs(node, PullModel, "pull", fails)
    result = cli("model", "pull", "smollm2")
    assert (result.code, result.out) == (1, "")
    assert result.err.endswith("relaydesk: the Hub has no such file: check the name\n")


def test_a_job_that_another_front_stopped(cli: Any, node: Any) -> None:
    async def stopped(job: Job) -> None:
        raise asyncio.CancelledError

    runs(node, PullModel, "pull", stopped)
    result = cli("model", "pull", "hf:owner/repo")
    assert result.code == 1
    assert result.err.endswith("pull hf:owner/repo was stopped: the same command goes on where it stopped\n")


def test_the_node_goes_away(cli: Any, node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaydesk.surfaces.cli.follow._PAUSE_S", 0.1)

    async def ends_the_node(job: Job) -> None:
        job.progress(1, 2)
        await asyncio.sleep(0.2)
        node._stop.set()
        await asyncio.Event().wait()

    runs(node, PullModel, "pull", ends_the_node)
    result = cli("model", "pull", "smollm2")
    assert (result.code, result.out) == (3, "")
    assert result.err.endswith(f"no node answers at {node.socket}: start one with `relaydesk serve`\n")


def test_an_interrupt_stops_the_job(node: Any) -> None:
    runs(node, PullModel, "pull", never_ends)
    child = subprocess.Popen(
        [sys.executable, "-m", "relaydesk", "model", "pull", "smollm2"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 10
    while not node.seen and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.3)
    os.kill(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=10)
    assert (child.returncode, out) == (1, "")
    assert "was stopped: the same command starts it again from the beginning\n" in err
    assert "Traceback" not in err
    assert isinstance(node.seen[-1], CancelJob)


@pytest.mark.parametrize(("answer", "goes_on"), [(b"n\n", True), (b"y\n", False)])
def test_an_interrupt_on_a_terminal_asks(node: Any, answer: bytes, goes_on: bool) -> None:
    runs(node, PullModel, "pull", never_ends)
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-m", "relaydesk", "model", "pull", "hf:owner/repo"]
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    _until(terminal, b"1.0 MiB")
    child.send_signal(signal.SIGINT)
    _until(terminal, b"Stop it? [Y/n]: ")
    os.write(terminal, answer)
    shown = _until(terminal, None)
    os.close(terminal)
    assert child.wait(10) == 1
    state = node.jobs.view().jobs[0].state
    if goes_on:
        assert (state, b"It goes on in the node" in shown) == ("running", True)
    else:
        assert (state, b"the same command goes on where it stopped" in shown) == ("cancelled", True)


def _until(terminal: int, wanted: bytes | None) -> bytes:
    """What the terminal shows up to ``wanted``, or until the program ended."""
    shown = b""
    while wanted is None or wanted not in shown:
        ready, _, _ = select.select([terminal], [], [], 10)
        assert ready, shown
        try:
            data = os.read(terminal, 65536)
        except OSError:  # Linux ends a terminal without a reader with EIO
            data = b""
        if not data:
            assert wanted is None, shown
            break
        shown += data
    return shown


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"done": 0, "total": 0}, "x"),
        ({"done": 3 << 20, "total": 0, "rate_per_s": 1 << 20}, "x  3.0 MiB  1.0 MiB/s"),
        ({"done": 1, "total": 2}, "x  " + "█" * 14 + "░" * 14 + "   50%  1 B of 2 B"),
        (
            {"done": 9, "total": 2, "note": SafeText("checking")},
            "x  " + "█" * 28 + "  100%  9 B of 2 B  checking",
        ),
        ({"kind": "load", "done": 250, "total": 1000}, "x  " + "█" * 7 + "░" * 21 + "   25%"),
    ],
)
def test_progress_lines(changes: dict[str, Any], line: str) -> None:
    job = JobView(
        **{"id": "j", "kind": "pull", "subject": "x", "state": "running", "started_at_ms": 0, **changes}
    )
    assert progress_line(job) == line

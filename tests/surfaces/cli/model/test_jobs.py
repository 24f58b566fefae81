"""`relaydesk model pull` and `load`: following a job to its end, and stopping it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.commands import CancelJob, LoadModel, Outcome, PullModel
from relaydesk.core.errors import PeerError
from relaydesk.core.text import SafeText
from relaydesk.core.view.sections import FaultView, JobView
from relaydesk.engine.jobs import Job
from relaydesk.surfaces.cli.follow import progress_line
from relaydesk.surfaces.control import light

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
    assert result.out == "hf:owner/repo:Q4_0 is registered as mine: its first request loads it\n"
    assert node.seen == [PullModel("hf:owner/repo:Q4_0", "mine", {"ctx": 1024, "preload": True})]
    assert "hf:owner/repo:Q4_0   10%  10.0 of 100.0 MiB  5.0 MiB/s  18 s left\n" in result.err


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
    assert result.err.endswith(
        "relaydesk: the node went away during the pull of smollm2: start it again with `relaydesk serve`; "
        "then the same command starts it again from the beginning\n"
    )


def test_a_pull_under_way_is_joined_and_not_started_twice(cli: Any, node: Any) -> None:
    async def slow(job: Job) -> None:
        job.progress(1, 2)
        await asyncio.sleep(1.0)
        job.progress(2, 2, 0, "smollm2 is registered already")

    runs(node, PullModel, "pull", slow)
    light.request(node.socket, "POST", "/commands/pull-model", b'{"reference":"smollm2"}')
    result = cli("model", "pull", "smollm2")
    assert (result.code, result.out) == (0, "smollm2 is registered already\n")
    assert "smollm2 is being pulled already: this shows how far it is\n" in result.err
    assert node.seen == [PullModel("smollm2")]
    # With a name it is a registration of its own.
    assert cli("model", "pull", "smollm2", "--name", "other").code == 0
    assert len(node.seen) == 2


def test_what_is_under_way_is_shown(cli: Any, node: Any) -> None:
    runs(node, PullModel, "pull", never_ends)
    light.request(node.socket, "POST", "/commands/pull-model", b'{"reference":"hf:owner/repo"}')
    for args in (("status",), ("model", "list")):
        out = cli(*args).out
        assert "UNDER WAY" in out
        assert "▲ pull hf:owner/repo  1.0 MiB" in out
    assert [job["subject"] for job in cli("status", "--json").json["jobs"]] == ["hf:owner/repo"]


def test_a_model_that_does_not_fit_gets_the_next_step(cli: Any, node: Any) -> None:
    async def refuse(_command: Any) -> Outcome:
        fault = FaultView("model_unavailable", SafeText('"big" needs about 9000 MB and there is less'))
        return Outcome(ok=False, fault=fault)

    node.answers[LoadModel] = refuse
    result = cli("model", "load", "big")
    assert result.code == 1
    assert result.err == (
        'relaydesk: "big" needs about 9000 MB and there is less: `relaydesk model fit big` says what would '
        "help\n"
    )


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


@pytest.mark.parametrize(
    ("answer", "goes_on"), [(b"n\n", True), (b"y\n", False), (b"\x03", False)], ids=["no", "yes", "interrupt"]
)
def test_an_interrupt_on_a_terminal_asks(node: Any, answer: bytes, goes_on: bool) -> None:
    runs(node, PullModel, "pull", never_ends)
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-m", "relaydesk", "model", "pull", "hf:owner/repo"]
    child = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=lambda: _own(theirs)
    )
    os.close(theirs)
    _until(terminal, b"1.0 MiB")
    os.write(terminal, b"\x03")
    _until(terminal, b"Stop the pull of hf:owner/repo? (n: it goes on in the node) [Y/n]: ")
    time.sleep(0.3)  # an interrupt that comes before Python waits for a line is seen only with the next key
    os.write(terminal, answer)
    shown = b" ".join(_until(terminal, None).split())
    os.close(terminal)
    assert child.wait(10) == 1
    state = node.jobs.view().jobs[0].state
    if goes_on:
        assert (state, b"It goes on: `relaydesk status` shows how far it is" in shown) == ("running", True)
    else:
        assert (state, b"the same command goes on where it stopped" in shown) == ("cancelled", True)


def _own(terminal: int) -> None:
    """Make a terminal this process's own, so that ^C on it interrupts."""
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


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
    ("changes", "room", "line"),
    [
        ({"done": 0, "total": 0}, 79, "x"),
        ({"done": 3 << 20, "total": 0, "rate_per_s": 1 << 20}, 79, "x  3.0 MiB  1.0 MiB/s"),
        ({"done": 1, "total": 2}, 79, "x  " + "█" * 14 + "░" * 14 + "   50%  1 of 2 B"),
        ({"done": 1, "total": 2}, 0, "x   50%  1 of 2 B"),
        (
            {"done": 9, "total": 2, "note": SafeText("checking")},
            79,
            "x  " + "█" * 28 + "  100%  9 of 2 B  checking",
        ),
        ({"kind": "load", "done": 250, "total": 1000}, 79, "x  " + "█" * 7 + "░" * 21 + "   25%"),
        ({"done": 1, "total": 2}, 30, "x  ██████░░░░░   50%  1 of 2 B"),
        ({"done": 1, "total": 2}, 12, "x   50%  1 …"),
    ],
)
def test_progress_lines(changes: dict[str, Any], room: int, line: str) -> None:
    job = JobView(
        **{"id": "j", "kind": "pull", "subject": "x", "state": "running", "started_at_ms": 0, **changes}
    )
    assert progress_line(job, room) == line


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.integers(0, 1 << 30), st.integers(20, 120))
def test_a_line_of_progress_never_wraps(done: int, total: int, rate: int, room: int) -> None:
    job = JobView(
        "j", "pull", "hf:owner/a-long-repository", "running", 0, done, total, rate, SafeText("downloading")
    )
    assert len(progress_line(job, room)) <= room

"""Following a long command of the node until it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Final

import click

from relaydesk.core.codec import fault_of
from relaydesk.core.commands import CancelJob
from relaydesk.core.errors import EnvError, FaultError, LocalError, PeerError, raise_fault
from relaydesk.core.view.node_view import Update
from relaydesk.core.view.sections import JobView
from relaydesk.surfaces.cli.attach import Node, read
from relaydesk.surfaces.cli.output import ago, note, of_size, shorten, size, width
from relaydesk.surfaces.control.routes import CLOSED_PREFIX

_TRIES: Final = 5
_PAUSE_S: Final = 0.5
_PLAIN_EVERY_S: Final = 5.0
_BAR: Final = 28
_LEAST_BAR: Final = 6
_ECHO: Final = 3  # cells left for the terminal's own ^C


def follow(node: Node, job_id: str, *, resumes: str) -> JobView:
    """Show a job's progress until it ended, and return it; raises the fault of one that failed.

    An interrupt offers to stop the job; ``resumes`` then says what becomes of what it did so far.
    """
    progress = _Progress()
    job: JobView | None = None
    try:
        while True:
            try:
                for job in _states(node, job_id):
                    if job.state != "running":
                        progress.clear()
                        return _ended(job, resumes)
                    progress.show(job)
            except KeyboardInterrupt:
                progress.clear()
                if _goes_on(node, job_id, job, resumes):
                    raise click.exceptions.Exit(1) from None
    except FaultError as error:
        progress.clear()
        silent = "did not answer" in error.fault.message
        if error.fault.code in ("no_node", "shutting_down") and not silent:
            raise _node_gone(job, resumes) from None
        raise


def _node_gone(job: JobView | None, resumes: str) -> EnvError:
    what = f"the node went away during the {job.kind} of {job.subject}" if job else "the node went away"
    return EnvError("no_node", what, f"start it again with `relaydesk serve`; then {resumes}")


def _ended(job: JobView, resumes: str) -> JobView:
    if job.state == "cancelled":
        raise LocalError("client_closed", f"{job.kind} {job.subject} was stopped", resumes)
    if job.state == "failed":
        if job.fault is None:
            raise PeerError("internal_error", f"{job.kind} {job.subject} failed", "see the node's log")
        raise_fault(fault_of(job.fault))
    return job


def _goes_on(node: Node, job_id: str, job: JobView | None, resumes: str) -> bool:
    """Ask whether to stop the job (where nobody can be asked: yes), and do it. True: it goes on.

    A second interrupt, as an answer, means what the first one meant.
    """
    what = f"the {job.kind} of {job.subject}" if job is not None else "it"
    if sys.stdin.isatty():
        try:
            stop = click.confirm(f"Stop {what}? (n: it goes on in the node)", default=True, err=True)
        except (click.Abort, KeyboardInterrupt):
            note("")
            stop = True
        if not stop:
            note("It goes on: `relaydesk status` shows how far it is.")
            return True
    try:
        node.call(CancelJob(id=job_id))
    except FaultError as error:
        if error.fault.code != "not_found":
            raise
    return False


def _states(node: Node, job_id: str) -> Iterator[JobView]:
    """The job, each time it moved on. A watch that was lost is taken up again a few times."""
    left = _TRIES
    while left:
        seen = False
        for line in node.watch("jobs"):
            if line.startswith(CLOSED_PREFIX):
                break
            section = read(line, Update).jobs
            if section is None or section.value is None:
                continue
            job = next((job for job in section.value.jobs if job.id == job_id), None)
            if job is None:
                raise PeerError("not_found", "the node no longer knows this job", "see `relaydesk status`")
            seen = True
            yield job
        left = _TRIES if seen else left - 1
        time.sleep(_PAUSE_S)
    raise PeerError("shutting_down", "the node went away", "start it again with `relaydesk serve`")


class _Progress:
    """A bar on a terminal; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._tty = sys.stderr.isatty()
        self._shown = False
        self._last_line = ""
        self._last_at = -_PLAIN_EVERY_S

    def show(self, job: JobView) -> None:
        if self._tty:
            click.echo("\r\x1b[K" + progress_line(job, _columns() - _ECHO), err=True, nl=False, color=True)
            self._shown = True
            return
        line, now = progress_line(job), time.monotonic()
        if line != self._last_line and now - self._last_at >= _PLAIN_EVERY_S:
            note(line)
            self._last_line, self._last_at = line, now

    def clear(self) -> None:
        if self._shown:
            click.echo("\r\x1b[K", err=True, nl=False, color=True)
            self._shown = False


def _columns() -> int:
    import shutil

    return max(20, shutil.get_terminal_size().columns)


def progress_line(job: JobView, room: int = 0) -> str:
    """One line: subject, share, and for a pull, which counts bytes, amounts, rate and time left.

    In ``room`` cells a bar takes what the words leave; without it there is none.
    """
    parts = [str(job.subject)]
    share = min(1.0, job.done / job.total) if job.total > 0 else None
    if share is not None:
        parts.append(f"{share:4.0%}")
    if job.kind == "pull" and job.done:
        parts.append(of_size(job.done, job.total))
        if job.rate_per_s:
            parts.append(f"{size(job.rate_per_s)}/s")
            if job.total > job.done:
                parts.append(f"{ago((job.total - job.done) / job.rate_per_s)} left")
    if job.note:
        parts.append(str(job.note))
    line = "  ".join(parts)
    length = min(_BAR, room - width(line) - 2)
    if share is None or length < _LEAST_BAR:
        return shorten(line, room) if room else line
    full = round(share * length)
    return "  ".join([parts[0], "█" * full + "░" * (length - full), *parts[1:]])

"""Pulls and loads under way, as lines with a gauge each."""

from __future__ import annotations

from typing import Final

from relaydesk.core.view.amounts import size
from relaydesk.core.view.sections import JobsView, JobView
from relaydesk.surfaces.console.panes.prose import fault_lines, sentence
from relaydesk.surfaces.console.pieces import MARKS
from relaydesk.surfaces.console.widgets.cells import fit
from relaydesk.surfaces.console.widgets.cells import width as cells
from relaydesk.surfaces.console.widgets.gauge import gauge
from relaydesk.surfaces.console.widgets.spans import Line, Span

LINES: Final = 4
_SUBJECT: Final = 24
_LEAST_GAUGE: Final = 12


def running(jobs: JobsView | None) -> tuple[JobView, ...]:
    """Jobs under way, newest first."""
    return tuple(job for job in jobs.jobs if job.state == "running") if jobs is not None else ()


def lines(jobs: JobsView | None, width: int, *, ascii: bool = False) -> tuple[Line, ...]:
    """A line for each job under way, and what became of the newest if it failed."""
    if jobs is None:
        return ()
    shown = [_line(job, width, ascii=ascii) for job in running(jobs)[:LINES]]
    newest = jobs.jobs[0] if jobs.jobs else None
    if newest is not None and newest.state == "failed" and newest.fault is not None:
        head = f"{newest.kind} {newest.subject} failed"
        shown.append((Span(f"{MARKS['error']} {head}", "error"),))
        shown += [(Span("  "), *line) for line in fault_lines(newest.fault, width - 2)]
        shown.append((Span("  esc hides this; the log keeps it", "dim"),))
    return tuple(shown)


def said(job: JobView) -> str:
    """A job as a sentence: ``pull smollm2: downloading, 40 %, 12.0 MiB/s``."""
    return sentence(f"{job.kind} {job.subject}: {', '.join(_words(job, percent=True)) or 'under way'}")


def _words(job: JobView, *, percent: bool = False) -> list[str]:
    words = [str(job.note)] if job.note else []
    if percent and job.total:
        words.append(f"{100 * job.done // job.total} %")
    if job.rate_per_s:
        words.append(f"{size(job.rate_per_s)}/s")
    return words


def _line(job: JobView, width: int, *, ascii: bool) -> Line:
    kind = f"{MARKS['info']} {job.kind} "
    most = min(_SUBJECT, max(1, width - cells(kind) - _LEAST_GAUGE - 2))
    head = f"{kind}{fit(job.subject, min(cells(job.subject), most))}  "
    words = ", ".join(_words(job))
    tail = f"  {words}" if words else ""
    room = width - cells(head) - cells(tail)
    if room < _LEAST_GAUGE:
        tail = f"  {fit(words, max(0, width - cells(head) - _LEAST_GAUGE - 2))}".rstrip()
        room = width - cells(head) - cells(tail)
    share = job.done / job.total if job.total else None
    return (Span(head, "info"), *gauge(share, min(room, 40), ascii=ascii), Span(tail, "dim"))

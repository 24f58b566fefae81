"""What is another than in the run before."""

from __future__ import annotations

from relaydesk.core.text import safe_text
from relaydesk.surfaces.console.panes.hopcheck.compare import changes
from tests.surfaces.console.panes.hopcheck.scenes import BAD, BUFFERED, CLEAN, FOUND, later, replace


def _said(report: object, before: object) -> list[str]:
    return [f"{each.tone}: {each.text}" for each in changes(report, before)]  # type: ignore[arg-type]


def test_without_a_run_before_there_is_nothing_to_say() -> None:
    assert _said(FOUND.report, None) == []


def test_gone_new_and_as_it_was() -> None:
    first = FOUND.report
    assert first is not None
    assert CLEAN.report is not None
    assert _said(later(CLEAN.report), first) == ["ok: Gone since 10:52:20: nginx removes X-Zs-Relay-Hop."]
    assert _said(later(first), first) == ["warn: As at 10:52:20: nginx removes X-Zs-Relay-Hop."]
    assert _said(later(BAD), first) == [
        "error: New since 10:52:20: Cloudflare holds streams back.",
        "warn: As at 10:52:20: nginx removes X-Zs-Relay-Hop.",
    ]
    moved = replace(BAD, findings=(BUFFERED, replace(BUFFERED, layer="nginx")))
    assert _said(moved, BAD)[:1] == ["ok: Gone since 10:53:15: nginx removes X-Zs-Relay-Hop."]
    assert _said(later(BAD), BAD) == ["warn: As at 10:53:15: 2 findings."]


def test_nothing_then_and_nothing_now() -> None:
    assert CLEAN.report is not None
    assert _said(later(CLEAN.report), CLEAN.report) == ["dim: Nothing is another than at 10:52:20."]


def test_other_urls_are_not_compared() -> None:
    assert FOUND.report is not None
    other = replace(FOUND.report, url=safe_text("https://other.example"))
    assert _said(FOUND.report, other) == ["dim: The run before, at 10:52:20, was of https://other.example."]

"""A fit report as a bar and sentences."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.pool.need import Component
from relaydesk.surfaces.console.panes.models import fit
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.scenes import FITS, LONG, REPORTS, TOO_LARGE, texts


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_parts_add_up_to_the_need(report: fit.FitReport) -> None:
    assert sum(part.value for part in fit.parts(report)) == report.need_mib
    assert len(fit.parts(report)) <= 5


def test_a_component_nobody_knows_is_not_lost() -> None:
    new = msgspec.structs.replace(FITS, components=(*FITS.components, Component("vision", 50)), need_mib=293)
    assert sum(part.value for part in fit.parts(new)) == 293


def test_why_it_does_not_fit_stands_first() -> None:
    lines = texts(fit.lines(TOO_LARGE, 60))
    assert lines[:3] == [
        "✗ can never fit here: 6040 MiB more than there is in all",
        '  "qwen3-32b" needs 21840 MiB, more than the 15800 MiB there',
        "  are in all.",
    ]
    assert "◐ Next: add 6040 MiB of memory, or pick a smaller or more" in lines
    assert not any("f changes" in line for line in lines)


def test_the_mark_below_the_bar_is_where_free_memory_ends() -> None:
    lines = texts(fit.lines(TOO_LARGE, 60))
    bar, mark = lines[4], lines[5]
    assert (len(bar), bar.count("·")) == (60, 0)
    # 9214 of 21840 MiB on 60 cells.
    assert mark.index("▲") == round(9214 / 21840 * 60) - 1
    assert mark.endswith("▲ 9214 MiB free")
    small = texts(fit.lines(FITS, 60))[3]
    assert (small.count("·"), len(small)) == (60 - 4, 60)


def test_what_the_suggestion_changes_can_be_done_by_a_key() -> None:
    assert fit.changes(LONG) == {"slots": 2}
    assert fit.command(LONG) == "relaydesk model set smollm2-long slots=2"
    said = " ".join(" ".join(texts(fit.lines(LONG, 70))).split())
    assert "f changes the settings, or: relaydesk model set smollm2-long slots=2" in said
    assert fit.changes(TOO_LARGE) == {}
    assert fit.command(FITS) == ""


def test_only_never_is_an_error() -> None:
    heads = [texts(fit.lines(report, 80))[0][:30] for report in (FITS, LONG, TOO_LARGE)]
    assert heads == ["● fits", "▲ does not fit as it is set: 9", "✗ can never fit here: 6040 MiB"]
    now = msgspec.structs.replace(LONG, ever_fits=True)
    assert texts(fit.lines(now, 80))[0] == "▲ does not fit now: 1522 MiB too little is free"
    makes_room = msgspec.structs.replace(FITS, unloads=("a", "b"))
    assert texts(fit.lines(makes_room, 80))[0] == "● fits once a and b are unloaded, by themselves"


def test_of_a_loaded_model_the_report_gives_no_advice() -> None:
    lines = texts(fit.lines(LONG, 60, loaded=True))
    assert lines[0] == "● loaded"
    assert not any("Next" in line for line in lines)
    assert any("without it" in line for line in lines)


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
@pytest.mark.parametrize("width", [38, 56, 78])
@pytest.mark.parametrize("ascii", [False, True])
def test_no_line_is_wider_than_the_detail(report: fit.FitReport, width: int, ascii: bool) -> None:
    assert all(line_width(line) <= width for line in fit.lines(report, width, ascii=ascii))


def test_changes_as_words_and_why_there_are_none() -> None:
    assert fit.words(LONG) == "slots 8 → 2"
    assert fit.unfixable(LONG) == ""
    assert fit.unfixable(FITS) == "smollm2 fits already"
    assert fit.unfixable(TOO_LARGE) == "no setting would make it fit: enter shows its report"
    wait = msgspec.structs.replace(LONG.suggestion, change="wait", sentence="wait until a falls idle")
    assert fit.unfixable(msgspec.structs.replace(LONG, suggestion=wait)) == (
        "nothing to change: wait until a falls idle"
    )
    # Settings that would not be enough are not given up.
    short = msgspec.structs.replace(LONG.suggestion, change="slots+memory", more_mib=100)
    assert fit.changes(msgspec.structs.replace(LONG, suggestion=short)) == {}

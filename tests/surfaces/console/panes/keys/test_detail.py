"""One key as a detail."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.view.sections import FaultView
from relaydesk.surfaces.console.panes.keys import detail, usage
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.scenes import KEYS, LOAD_FAILED, USAGE, hostile, texts
from tests.surfaces.console.stage import NOW_MS, sample

META = sample()["meta"]
DEFAULT, ANN, _, TOOL = KEYS.keys


def test_quotas_stand_first_and_add_up() -> None:
    lines = texts(detail.lines(ANN, META, None, NOW_MS, 60))
    assert lines[2] == "tokens       91.3 k of 200.0 k tokens today"
    assert lines[3] == "█" * 28 + "▓" * 7 + "·" * 25
    assert lines[4] == "█ used  ▓ 24.6 k set aside  84.1 k left"
    assert lines[5].startswith("at once      1 of 2  ████████████░░░░")
    assert lines[6].startswith("this minute  4 of 20  ███")
    assert "models       smollm2" in lines
    assert "expires      in 30 d, 2026-04-13 15:09 UTC" in lines
    assert "◐ What it used by day is being fetched." in lines


def test_without_a_limit_there_is_no_bar() -> None:
    lines = texts(detail.lines(DEFAULT, META, usage.Usage(), NOW_MS, 60))
    assert lines[2:5] == [
        "tokens       40.2 k today, no limit",
        "at once      1, no limit",
        "this minute  0, no limit",
    ]
    assert "kept in      state directory" in lines
    assert "place        only in a URL: /k/<key>/v1" in texts(detail.lines(TOOL, META, None, NOW_MS, 60))


def test_a_key_of_the_network_says_what_it_has_paid() -> None:
    assert "network" not in " ".join(texts(detail.lines(ANN, META, None, NOW_MS, 60)))
    free = msgspec.structs.replace(ANN, network=True)
    lines = texts(detail.lines(free, META, None, NOW_MS, 70))
    assert "network      models of the relay network that are free" in lines
    paying = msgspec.structs.replace(free, credit_per_day=9_000, credit_spent=1_500, credit_held=200)
    lines = texts(detail.lines(paying, META, None, NOW_MS, 78))
    assert "network      1,500 of 9,000 microunits spent today, 200 set aside" in lines


def test_what_cannot_be_fetched_says_why() -> None:
    lines = texts(detail.lines(ANN, META, LOAD_FAILED, NOW_MS, 60))
    assert "✗ the engine ended while it loaded qwen3-32b." in lines


@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize("width", [38, 56, 78])
def test_no_line_is_wider_than_the_detail(width: int, ascii: bool) -> None:
    used: tuple[usage.Usage | FaultView | None, ...] = (usage.as_usage(USAGE), LOAD_FAILED, None)
    for key in (*KEYS.keys, *hostile()["keys"].keys):
        for each in used:
            lines = detail.lines(key, META, each, NOW_MS, width, ascii=ascii)
            # The first is the name, which whoever draws it cuts.
            assert all(line_width(line) <= width for line in lines[1:])

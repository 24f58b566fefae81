"""Keys as rows."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.view.sections import KeysView, KeyView
from relaydesk.surfaces.console.panes.keys import present
from tests.surfaces.console.panes.scenes import DAY_MS, KEYS
from tests.surfaces.console.stage import NOW_MS

DEFAULT, ANN, BATCH, TOOL = present.rows(KEYS, NOW_MS)
NAMES = [column.key for column in present.COLUMNS]


def _text(row: present.Row, column: str) -> str:
    return row.cells[NAMES.index(column)].text


def test_a_row_has_what_is_used_of_what() -> None:
    assert [cell.text for cell in ANN.cells] == [
        "ann", "█████▓····", "91.3 k", "200.0 k", "24.6 k", "1/2", "4/20", "30 d", "smollm2", "7a365f58",
    ]  # fmt: skip
    assert [cell.text for cell in DEFAULT.cells] == [
        "default", "–", "40.2 k", "none", "", "1", "0", "never", "all", "1b9e4f07",
    ]  # fmt: skip


def test_used_and_set_aside_differ_without_colours() -> None:
    key = msgspec.structs.replace(KEYS.keys[1], used=50_000, reserved=100_000)
    for ascii, bar in ((False, "███▓▓▓▓▓··"), (True, "###=====..")):
        (row,) = present.rows(KeysView((key,)), NOW_MS, ascii=ascii)
        assert len(_text(row, "bar")) == present.BAR
        fillings = [_text(row, "bar").count(char) for char in sorted(set(bar), key=bar.index)]
        assert fillings[0] in (2, 3)
        assert sum(fillings) == present.BAR
        assert fillings[1] == 5


@pytest.mark.parametrize(
    ("used", "tone"), [(0, "accent"), (799, "accent"), (800, "warn"), (999, "warn"), (1000, "error")]
)
def test_what_is_nearly_used_up_is_marked(used: int, tone: str) -> None:
    assert present.tone(KeyView("a", "b", "c", 0, 1000, used=used)) == tone


def test_what_ends_soon_is_marked_and_what_has_ended_says_so() -> None:
    at = NAMES.index("expires")
    assert (BATCH.cells[at].text, BATCH.cells[at].tone) == ("3 d", "warn")
    over = msgspec.structs.replace(KEYS.keys[1], expires_at_ms=NOW_MS - 1)
    (row,) = present.rows(KeysView((over,)), NOW_MS)
    assert (row.cells[at].text, row.cells[at].tone) == ("expired", "error")


def test_how_long_until_then_stands_still() -> None:
    assert [present.until(NOW_MS + ms, NOW_MS) for ms in (DAY_MS * 2 - 1, 7_199_999, 61_000, 5_000, -5)] == [
        "1 d", "1 h", "1 min", "5 s", "0 s",
    ]  # fmt: skip


def test_ages_stand_still_within_a_minute() -> None:
    ages = [present.age(NOW_MS - 1000 * seconds, NOW_MS) for seconds in (5, 60, 119, 7_260)]
    assert ages == ["just now", "1 min", "1 min", "2 h 1 min"]
    assert present.age(0, NOW_MS) == "–"


def test_a_key_without_a_limit_sorts_above_every_limit() -> None:
    sorts = [row.cells[NAMES.index("limit")].sort for row in (DEFAULT, ANN, BATCH, TOOL)]
    assert sorts == [float("inf"), 200_000, 50_000, float("inf")]

"""The table on a screen: what is drawn, how often, and what keys and mouse do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from rich.cells import cell_len
from textual.events import MouseScrollDown
from textual.pilot import Pilot

from relaydesk.core.text import safe_text
from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.live_table import LiveTable
from relaydesk.surfaces.console.widgets.rows import Cell, Row, Sort
from tests.surfaces.console.widgets.widget_app import WidgetApp, screen_lines, screen_segments

COLUMNS = (
    Column("state", "STATE", width=9),
    Column("name", "NAME", fill=1, min_width=12),
    Column("size", "SIZE", width=8, align="right", priority=1, descending=True),
    Column("note", "NOTE", fill=2, min_width=30, priority=2),
)
HOSTILE = (
    "[red]x[/red]",
    "[/oops]",
    "[@click=app.quit]quit[/]",
    "\x1b[31mred\x1b[0m",
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1b]0;title\x07\x9b5m",
    "abc\u202egnp.exe",
    "a\u0301\u0302\u0303\u0304" * 20,
    "漢" * 10_000,
    "a" * 10_000,
    "two\nlines\r\tand a tab",
    "\ud800\udfff",
    "👩\u200d👩\u200d👧 \ufe0f🇩🇪",
    "\u0301starts with a mark",
)


def _row(at: int, size: int | None = None, note: str = "") -> Row:
    size = at if size is None else size
    return Row(
        f"m{at}", (Cell("● up", "ok"), Cell(f"model-{at:04d}"), Cell(f"{size:,}", sort=size), Cell(note))
    )


def _rows(count: int) -> tuple[Row, ...]:
    return tuple(_row(at) for at in range(count))


class TableApp(WidgetApp):
    """Keeps what the table reports."""

    def __init__(self, table: LiveTable) -> None:
        super().__init__(table)
        self.highlighted: list[str | None] = []
        self.opened: list[str] = []
        self.orders: list[Sort | None] = []

    def on_live_table_row_highlighted(self, message: LiveTable.RowHighlighted) -> None:
        self.highlighted.append(None if message.row is None else message.row.key)

    def on_live_table_row_selected(self, message: LiveTable.RowSelected) -> None:
        self.opened.append(message.row.key)

    def on_live_table_sort_changed(self, message: LiveTable.SortChanged) -> None:
        self.orders.append(message.sort)


@pytest.fixture
def table() -> LiveTable:
    return LiveTable(COLUMNS, empty="No model yet. Press a to add one.")


@pytest.fixture
def app(table: LiveTable) -> TableApp:
    return TableApp(table)


async def _drawn(pilot: Pilot[None], table: LiveTable) -> int:
    """Lines drawn since the last call."""
    await pilot.pause()
    before = getattr(table, "_test_count", 0)
    table._test_count = table.lines_rendered  # type: ignore[attr-defined]
    return table.lines_rendered - before


def _body(app: TableApp) -> list[str]:
    return [line[:-1].strip() for line in screen_lines(app)[1:]]


def _names(app: TableApp) -> list[str]:
    return [line.split()[2] for line in _body(app) if line]


async def test_of_late_rows_only_those_on_the_screen_are_made(app: TableApp, table: LiveTable) -> None:
    made: set[int] = set()

    def cells(at: int) -> tuple[Cell, ...]:
        made.add(at % 1000)
        return (*_row(at % 1000).cells[:-1], Cell(str(at)))

    async with app.run_test(size=(80, 24)) as pilot:
        for tick in range(3):
            table.rows = tuple(Row.late(str(at), cells, at + 1000 * tick) for at in range(500))
            await pilot.pause()
        assert _names(app)[:2] == ["model-0000", "model-0001"]
        assert made == set(range(23))


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_only_changed_visible_lines_are_drawn(
    app: TableApp, table: LiveTable, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size) as pilot:
        rows = list(_rows(500))
        table.rows = tuple(rows)
        await _drawn(pilot, table)

        table.rows = tuple(_rows(500))  # equal values, other objects
        assert await _drawn(pilot, table) == 0

        rows[7] = _row(7, size=999_999)
        table.rows = tuple(rows)
        assert await _drawn(pilot, table) == 1
        assert "999,999" in screen_lines(app)[8]

        rows[400] = _row(400, size=1)  # out of sight
        table.rows = tuple(rows)
        assert await _drawn(pilot, table) == 0

        for at in range(0, 500, 10):
            rows[at] = _row(at, size=at + 1_000_000)
        table.rows = tuple(rows)
        assert await _drawn(pilot, table) == len(range(0, size[1] - 1, 10))

        await pilot.press("down")
        assert await _drawn(pilot, table) == 2


async def test_rows_seen_before_come_from_the_cache(app: TableApp, table: LiveTable) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        table.rows = _rows(100)
        table.focus()
        await pilot.press("pagedown", "pagedown", "home")
        await pilot.pause()
        before = table.strips_built
        await pilot.press("pagedown", "pagedown", "home")
        await pilot.pause()
        assert table.strips_built == before


async def test_ten_thousand_rows(app: TableApp, table: LiveTable) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        table.rows = _rows(10_000)
        table.focus()
        await pilot.press("end")
        await pilot.pause()
        assert _names(app)[-1] == "model-9999"
        assert app.highlighted[-1] == "m9999"
        assert table.summary == "10000 of 10000"
        table.filter_text = "model-77"
        await pilot.pause()
        assert len(table.view) == 100
        assert len(table._strips) <= 512


async def test_columns_drop_when_it_gets_narrow(app: TableApp, table: LiveTable) -> None:
    async with app.run_test(size=(120, 6)) as pilot:
        table.rows = (_row(1, note="why it is so"),)
        for width, keys in (
            (120, "state name size note"),
            (60, "state name size"),
            (34, "state name"),
            (20, "state name"),
            (8, "state"),
        ):
            await pilot.resize_terminal(width, 6)
            await pilot.pause()
            assert [column.key for column in table.shown_columns] == keys.split()
            lines = screen_lines(app)
            assert lines[0].split() == keys.upper().split()
            assert all(cell_len(line) == width for line in lines)


async def test_keys_move_the_cursor(app: TableApp, table: LiveTable) -> None:
    async with app.run_test(size=(80, 11)) as pilot:
        table.rows = _rows(40)
        table.focus()
        for keys, key in (
            ("down", "m1"), ("j", "m2"), ("k", "m1"), ("up", "m0"), ("up", "m0"), ("pagedown", "m9"),
            ("pagedown", "m18"), ("pageup", "m9"), ("end", "m39"), ("down", "m39"), ("home", "m0"),
        ):  # fmt: skip
            await pilot.press(keys)
            assert table.cursor_key == key, keys
            await pilot.pause()
            assert f"model-{int(key[1:]):04d}" in _names(app)
        await pilot.press("down", "enter")
        await pilot.pause()
        assert app.opened == ["m1"]


async def test_the_cursor_stays_on_its_row(app: TableApp, table: LiveTable) -> None:
    async with app.run_test(size=(80, 11)) as pilot:
        table.rows = _rows(40)
        assert table.move_to("m23")
        assert table.move_to("m20")
        assert not table.move_to("m99")
        await pilot.pause()
        line = _names(app).index("model-0020")
        # Rows come above it: neither cursor nor screen move, and nothing is drawn.
        await _drawn(pilot, table)
        table.rows = (*(_row(at) for at in range(100, 105)), *_rows(40))
        assert await _drawn(pilot, table) == 0
        assert table.cursor_key == "m20"
        assert _names(app).index("model-0020") == line
        table.sort = Sort("size", descending=True)
        await pilot.pause()
        assert table.cursor_key == "m20"
        assert "model-0020" in _names(app)
        table.rows = tuple(row for row in table.rows if row.key != "m20")
        await pilot.pause()
        assert table.cursor_key == "m19"
        # Reported once each, and not again where only rows around it changed.
        assert app.highlighted[-2:] == ["m20", "m19"]
        assert all(one != next for one, next in pairwise(app.highlighted))


async def test_at_the_top_new_rows_are_seen_coming(app: TableApp, table: LiveTable) -> None:
    async with app.run_test(size=(80, 11)) as pilot:
        table.rows = _rows(40)
        table.rows = (_row(100), *_rows(40))
        await pilot.pause()
        assert _names(app)[:2] == ["model-0100", "model-0000"]
        assert table.cursor_key == "m0"


async def test_order_by_title_click_and_by_key(app: TableApp, table: LiveTable) -> None:
    async with app.run_test(size=(80, 11)) as pilot:
        table.rows = tuple(_row(at, size=at % 4) for at in range(8))
        await pilot.pause()
        size_at = screen_lines(app)[0].index("SIZE") + 1
        await pilot.click(LiveTable, offset=(size_at, 0))
        await pilot.pause()
        assert "SIZE↓" in screen_lines(app)[0]
        assert _names(app) == [f"model-000{at}" for at in (3, 7, 2, 6, 1, 5, 0, 4)]
        await pilot.click(LiveTable, offset=(size_at, 0))
        await pilot.pause()
        assert "SIZE↑" in screen_lines(app)[0]
        assert _names(app) == [f"model-000{at}" for at in (0, 4, 1, 5, 2, 6, 3, 7)]
        await pilot.click(LiveTable, offset=(size_at, 0))
        await pilot.pause()
        assert _names(app) == [f"model-000{at}" for at in range(8)]
        assert app.orders == [Sort("size", descending=True), Sort("size"), None]
        assert [table.cycle_sort() for _ in range(4)][:2] == [Sort("state"), Sort("name")]
        table.sort = Sort("name")
        table.reverse_sort()
        await pilot.pause()
        assert _names(app)[0] == "model-0007"


async def test_the_filter_hides_and_says_so(app: TableApp, table: LiveTable) -> None:
    async with app.run_test(size=(80, 11)) as pilot:
        table.rows = _rows(40)
        table.filter_text = "MODEL-000"
        await pilot.pause()
        assert len(_names(app)) == 10
        assert table.summary == "1 of 10 (40 without the filter)"
        table.filter_text = "nothing like it"
        await pilot.pause()
        assert "No row holds “nothing like it”. Clear the filter to see all 40." in screen_lines(app)[2]
        assert app.highlighted[-1] is None
        table.filter_text = ""
        await pilot.pause()
        assert _names(app)[0] == "model-0000"


@pytest.mark.parametrize("width", [80, 20])
async def test_an_empty_table_says_what_to_do(app: TableApp, table: LiveTable, width: int) -> None:
    async with app.run_test(size=(width, 8)) as pilot:
        await pilot.pause()
        assert " ".join(" ".join(_body(app)).split()) == "No model yet. Press a to add one."
        await pilot.press("down", "enter", "end")
        assert table.cursor_key is None
        assert not app.opened
        table.empty = "Still none."
        await pilot.pause()
        assert "Still none." in screen_lines(app)[2]
        table.rows = _rows(1)
        await pilot.pause()
        assert not any("none" in line for line in _body(app))


async def test_the_mouse_selects_and_opens(app: TableApp, table: LiveTable) -> None:
    async with app.run_test(size=(80, 11)) as pilot:
        table.rows = _rows(40)
        await pilot.pause()
        await pilot.click(LiveTable, offset=(5, 4))
        await pilot.pause()
        assert (table.cursor_key, app.opened) == ("m3", [])
        await pilot.click(LiveTable, offset=(5, 6), times=2)
        await pilot.pause()
        assert (table.cursor_key, app.opened) == ("m5", ["m5"])
        await pilot._post_mouse_events([MouseScrollDown], LiveTable, offset=(5, 5))
        await pilot.pause()
        assert table.cursor_key == "m5"
        assert _names(app)[0] != "model-0000"
        # What the wheel moved out of sight comes back when the cursor moves.
        await pilot.press("down")
        await pilot.pause()
        assert "model-0006" in _names(app)


async def test_a_click_below_the_rows_is_nothing(app: TableApp, table: LiveTable) -> None:
    async with app.run_test(size=(80, 11)) as pilot:
        table.rows = _rows(3)
        await pilot.pause()
        await pilot.click(LiveTable, offset=(5, 8))
        await pilot.click(LiveTable, offset=(0, 0))
        await pilot.pause()
        assert (table.cursor_key, table.sort, app.opened) == ("m0", None, [])


def _hostile_rows(texts: Sequence[str]) -> tuple[Row, ...]:
    return tuple(
        Row(f"h{at}", (Cell("▲ bad", "error"), Cell(text, "no such tone"), Cell(text), Cell(text, "warn")))
        for at, text in enumerate(texts)
    )


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (60, 16), (9, 5)])
@pytest.mark.parametrize("safe", [True, False], ids=["safe", "raw"])
async def test_hostile_text_is_only_text(
    app: TableApp, table: LiveTable, size: tuple[int, int], safe: bool
) -> None:
    texts = [safe_text(text) if safe else text for text in HOSTILE]
    async with app.run_test(size=size) as pilot:
        table.rows = _hostile_rows(texts)
        table.focus()
        await pilot.pause()
        lines = screen_lines(app)
        assert all(line.isprintable() and cell_len(line) == size[0] for line in lines)
        if size[0] >= 60:
            assert "[@click=app" in lines[3]
        for y in (0, 3, 4):
            await pilot.click(LiveTable, offset=(min(18, size[0] - 3), y))
        table.filter_text = texts[2]
        table.sort = Sort("name")
        await pilot.pause()
        assert app.is_running
        assert all(line.isprintable() and cell_len(line) == size[0] for line in screen_lines(app))


async def test_without_colours_the_cursor_and_the_words_remain(
    monkeypatch: pytest.MonkeyPatch, table: LiveTable
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = TableApp(table)
    async with app.run_test(size=(80, 11)) as pilot:
        table.rows = _rows(5)
        table.focus()
        await pilot.press("down", "down")
        await pilot.pause()
        lines = screen_segments(app)
        reversed_lines = [
            y
            for y, line in enumerate(lines)
            if all(
                segment.style is not None and segment.style.reverse
                for segment in line
                if "model" in segment.text
            )
            and any("model" in segment.text for segment in line)
        ]
        assert reversed_lines == [3]
        for segment in (segment for line in lines for segment in line):
            style = segment.style
            for color in (style.color, style.bgcolor) if style is not None else ():
                assert color is None or len(set(color.get_truecolor())) == 1, "not a shade of grey"
        assert "● up" in screen_lines(app)[1]


async def test_focus_shows_in_cursor_and_titles(app: TableApp, table: LiveTable) -> None:
    async with app.run_test(size=(80, 11)) as pilot:
        table.rows = _rows(5)
        table.focus()
        await pilot.pause()
        with_keys = screen_segments(app)[:2]
        app.set_focus(None)
        await pilot.pause()
        without = screen_segments(app)[:2]
        # What is on the screen is known: nothing is left to draw.
        await _drawn(pilot, table)
        table.repaint()
        assert await _drawn(pilot, table) == 0
        assert with_keys[0] != without[0]
        assert with_keys[1] != without[1]


async def test_old_rows_are_dimmed(app: TableApp, table: LiveTable) -> None:
    async with app.run_test(size=(80, 11)) as pilot:
        table.rows = _rows(5)
        await pilot.pause()

        def tones() -> set[object]:
            return {segment.style for segment in screen_segments(app)[3][:-1] if segment.text.strip()}

        fresh = tones()
        table.stale = True
        await pilot.pause()
        assert len(fresh) == 2 and len(tones()) == 1 and not tones() & fresh
        table.stale = False
        await pilot.pause()
        assert tones() == fresh


async def test_another_theme_redraws_what_was_kept(app: TableApp, table: LiveTable) -> None:
    async with app.run_test(size=(80, 11)) as pilot:
        table.rows = _rows(5)
        await pilot.pause()
        dark = screen_segments(app)
        app.theme = "textual-light"
        await pilot.pause()
        await pilot.pause()
        light = screen_segments(app)
        assert all(dark[y] != light[y] for y in range(6))
        assert [segment.text for segment in dark[2]] == [segment.text for segment in light[2]]


async def test_columns_may_change(app: TableApp, table: LiveTable) -> None:
    async with app.run_test(size=(80, 11)) as pilot:
        table.rows = _rows(5)
        table.sort = Sort("size")
        table.columns = COLUMNS[:2]
        await pilot.pause()
        assert screen_lines(app)[0].split() == ["STATE", "NAME"]
        assert table.sort is None


async def test_rows_given_before_it_is_shown(table: LiveTable) -> None:
    table.rows = _rows(50)
    table.sort = Sort("size", descending=True)
    table.move_to("m7")
    app = TableApp(table)
    async with app.run_test(size=(80, 11)) as pilot:
        await pilot.pause()
        assert "model-0007" in _names(app)
        assert app.highlighted[-1] == "m7"

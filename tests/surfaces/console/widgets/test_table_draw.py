from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from relaydesk.surfaces.console.widgets.columns import Column, lay_out
from relaydesk.surfaces.console.widgets.rows import Cell, Row, Sort
from relaydesk.surfaces.console.widgets.table_draw import draw_header, draw_row, draw_sentence
from relaydesk.surfaces.console.widgets.tones import Palette

PLAIN = Style(color="white", bgcolor="black")
TONES = {"": PLAIN, "ok": PLAIN + Style(color="blue"), "strong": PLAIN + Style(bold=True), "dim": PLAIN}
PALETTE = Palette(TONES, PLAIN + Style(reverse=True), PLAIN + Style(underline=True))
COLUMNS = (
    Column("state", "STATE", width=6),
    Column("name", "NAME", fill=1, min_width=6),
    Column("size", "SIZE", width=4, align="right", priority=1),
)


def _header(width: int, sort: Sort | None = None) -> str:
    return draw_header(COLUMNS, lay_out(COLUMNS, width), width, PALETTE, sort=sort, focused=True).text


def test_titles_stand_over_their_columns() -> None:
    assert _header(26) == " STATE   NAME        SIZE "
    assert _header(26, Sort("size")) == " STATE   NAME        SIZE↑"
    assert _header(26, Sort("name", descending=True)) == " STATE   NAME↓       SIZE "
    assert _header(18, Sort("state")) == " STATE↑  NAME     "


def test_a_title_as_wide_as_its_column_stays_whole() -> None:
    columns = (Column("a", "ABCD", width=4), Column("b", "EFGH", width=4, align="right"))
    for key, shown in (("a", " ABCD↑ EFGH "), ("b", " ABCD  EFGH↑")):
        places = lay_out(columns, 12)
        assert draw_header(columns, places, 12, PALETTE, sort=Sort(key), focused=False).text == shown


def test_cells_have_their_tone_and_gaps_the_plain_one() -> None:
    row = Row("1", (Cell("● up", "ok"), Cell("模型-1"), Cell("12", "ok")))
    strip = draw_row(row, COLUMNS, lay_out(COLUMNS, 26), 26, PALETTE, whole=None)
    assert strip.text == " ● up    模型-1        12 "
    assert [(segment.text, segment.style) for segment in strip if segment.text.strip()] == [
        ("● up", TONES["ok"]),
        ("模型-1", PLAIN),
        ("12", TONES["ok"]),
    ]


def test_a_whole_line_has_one_style() -> None:
    row = Row("1", (Cell("up", "ok"),))
    strip = draw_row(row, COLUMNS, lay_out(COLUMNS, 30), 30, PALETTE, whole=PALETTE.cursor)
    assert {segment.style for segment in strip} == {PALETTE.cursor}


@given(
    st.lists(
        st.text(st.sampled_from("ab漢e\u0301🙂\x1b \u202e[") | st.characters(), max_size=40), max_size=4
    ),
    st.integers(0, 60),
)
@settings(max_examples=200, deadline=None)
def test_lines_are_exactly_as_wide_as_the_table(texts: list[str], width: int) -> None:
    row = Row("1", tuple(Cell(text) for text in texts))
    for whole in (None, PALETTE.cursor):
        strip = draw_row(row, COLUMNS, lay_out(COLUMNS, width), width, PALETTE, whole=whole)
        assert cell_len(strip.text) == strip.cell_length == width
        assert strip.text.isprintable()
    sentence = draw_sentence("".join(texts), width, PALETTE)
    assert cell_len(sentence.text) == sentence.cell_length == width

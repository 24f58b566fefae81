from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.surfaces.console.widgets.rows import Cell, Filter, Row, SortKey, sorted_rows


def _rows(*values: SortKey | None) -> list[Row]:
    return [Row(str(at), (Cell("", sort=value),)) for at, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "up", "down"),
    [
        ((3, 1, 2), "120", "021"),
        ((10, 9.5, None, 2), "3102", "0132"),
        (("b", "A", "c"), "102", "201"),
        ((1, 1, 0, 1), "2013", "0132"),
        (("x", 5, math.nan, "", 7), "14023", "04123"),
        ((), "", ""),
    ],
)
def test_order(values: tuple[SortKey | None, ...], up: str, down: str) -> None:
    assert "".join(row.key for row in sorted_rows(_rows(*values), 0)) == up
    assert "".join(row.key for row in sorted_rows(_rows(*values), 0, descending=True)) == down


def test_text_orders_where_nothing_else_is_given() -> None:
    rows = [Row("a", (Cell("beta"),)), Row("b", (Cell("Alpha"),)), Row("c")]
    assert [row.key for row in sorted_rows(rows, 0)] == ["b", "a", "c"]


@given(st.lists(st.none() | st.integers(0, 3) | st.text("aAb", max_size=2) | st.floats(), max_size=30))
@settings(max_examples=200, deadline=None)
def test_order_is_total_and_stable(values: list[SortKey | None]) -> None:
    rows = _rows(*values)
    for descending in (False, True):
        ordered = sorted_rows(rows, 0, descending=descending)
        assert sorted(int(row.key) for row in ordered) == list(range(len(rows)))
        again = sorted_rows(ordered, 0, descending=descending)
        assert again == ordered
    equal = [row.key for row in sorted_rows(rows, 0) if row.cells[0].sort == 1]
    assert equal == sorted(equal, key=int)


ROWS = (
    Row("1", (Cell("llama-3"), Cell("warm"))),
    Row("2", (Cell("LLAMA-2"), Cell("cold"))),
    Row("3", (Cell("mistral"), Cell("warm"))),
)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", "123"),
        ("llama", "12"),
        ("Llama WARM", "1"),
        ("warm", "13"),
        ("  ", "123"),
        ("3warm", ""),
        ("x", ""),
    ],
)
def test_every_word_must_be_there(text: str, keys: str) -> None:
    wanted = Filter()
    wanted.text = text
    assert "".join(row.key for row in wanted.apply(ROWS)) == keys


def test_a_row_that_changes_is_read_again() -> None:
    wanted = Filter()
    wanted.text = "warm"
    assert len(wanted.apply(ROWS)) == 2
    changed = (Row("1", (Cell("llama-3"), Cell("cold"))), *ROWS[1:])
    assert [row.key for row in wanted.apply(changed)] == ["3"]


def test_without_words_the_rows_are_the_same_object() -> None:
    assert Filter().apply(ROWS) is ROWS


def test_rows_that_are_gone_are_forgotten() -> None:
    wanted = Filter()
    wanted.text = "row"
    for tick in range(50):
        wanted.apply(tuple(Row(f"{tick}-{at}", (Cell("row"),)) for at in range(20)))
    assert len(wanted._known) <= 2 * 20 + 64 + 20


def test_the_cells_of_a_late_row_are_made_once_and_when_they_are_looked_at() -> None:
    made: list[int] = []

    def cells(source: int) -> tuple[Cell, ...]:
        made.append(source)
        return (Cell(str(source)),)

    row, same, other = (Row.late(key, cells, source) for key, source in (("a", 1), ("a", 1), ("a", 2)))
    assert row == row
    assert row != Row.late("b", cells, 1)
    assert made == []
    assert row.cell(0).text == "1"
    assert row == same == Row("a", (Cell("1"),))
    assert row != other
    assert made == [1, 1, 2]

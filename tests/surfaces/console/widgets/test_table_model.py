from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.rows import Cell, Row, Sort
from relaydesk.surfaces.console.widgets.table_model import TableModel

COLUMNS = (Column("name", "NAME", fill=1), Column("size", "SIZE", width=6, descending=True))


def _row(key: str, size: int = 0) -> Row:
    return Row(key, (Cell(key), Cell(str(size), sort=size)))


def _model(keys: str = "abcd") -> TableModel:
    model = TableModel(COLUMNS)
    model.set_rows(tuple(_row(key, at) for at, key in enumerate(keys)))
    return model


def _key(model: TableModel) -> str:
    row = model.cursor_row
    return "" if row is None else row.key


def test_the_first_rows_put_the_cursor_on_the_first() -> None:
    assert _key(_model()) == "a"
    assert _key(_model("")) == ""


@pytest.mark.parametrize(
    ("at", "after", "key"),
    [
        (1, "dcba", "b"),
        (1, "xyabcd", "b"),
        (1, "acd", "c"),  # gone: the cursor keeps its line
        (3, "abc", "c"),  # gone, and the line too
        (3, "", ""),
    ],
)
def test_the_cursor_stays_with_its_row(at: int, after: str, key: str) -> None:
    model = _model()
    model.move(at)
    model.set_rows(tuple(_row(name) for name in after))
    assert _key(model) == key


def test_an_order_keeps_the_cursor_on_its_row() -> None:
    model = _model()
    model.move(1)
    model.set_sort(Sort("size", descending=True))
    assert [row.key for row in model.view] == list("dcba")
    assert _key(model) == "b"
    model.set_sort(None)
    assert [row.key for row in model.view] == list("abcd")


def test_a_filter_that_hides_the_cursor_s_row_starts_at_the_top() -> None:
    model = _model()
    model.move(2)
    model.set_filter("c")
    assert _key(model) == "c"
    model.set_filter("d")
    assert _key(model) == "d"
    assert model.cursor == 0
    model.set_filter("")
    model.move(1)
    model.set_rows(tuple(Row(key, (Cell(text),)) for key, text in zip("abcd", "xyxx", strict=True)))
    model.set_filter("x")
    assert (_key(model), model.cursor) == ("a", 0)
    model.set_filter("none")
    assert model.cursor == -1
    model.set_filter("")
    assert _key(model) == "a"


def test_equal_rows_change_nothing() -> None:
    model = _model()
    assert not model.set_rows(tuple(_row(key, at) for at, key in enumerate("abcd")))
    assert model.set_rows(tuple(_row(key, at + 1) for at, key in enumerate("abcd")))


def test_orders_come_one_after_another() -> None:
    model = _model()
    seen = []
    for _ in range(3):
        model.set_sort(model.next_sort([0, 1]))
        seen.append(model.sort)
    assert seen == [Sort("name"), Sort("size", descending=True), None]
    # A column that has dropped out is passed over.
    model.set_sort(Sort("size"))
    assert model.next_sort([0]) == Sort("name")
    assert model.next_sort([]) is None


def test_clicks_turn_an_order_round_and_end_it() -> None:
    model = _model()
    seen = []
    for _ in range(3):
        model.set_sort(model.clicked_sort(1))
        seen.append(model.sort)
    assert seen == [Sort("size", descending=True), Sort("size"), None]
    model.set_sort(Sort("name"))
    assert model.clicked_sort(1) == Sort("size", descending=True)


def test_an_order_goes_with_its_column() -> None:
    model = _model()
    model.set_sort(Sort("nothing"))
    assert model.sort is None
    model.set_sort(Sort("size"))
    model.set_columns(COLUMNS[:1])
    assert model.sort is None


@given(
    st.lists(
        st.tuples(st.just("rows"), st.lists(st.sampled_from("abcdef"), unique=True, max_size=6))
        | st.tuples(st.just("move"), st.integers(-2, 8))
        | st.tuples(st.just("filter"), st.sampled_from(["", "a", "b", "zz"]))
        | st.tuples(st.just("sort"), st.sampled_from([None, Sort("name"), Sort("name", descending=True)])),
        max_size=20,
    )
)
@settings(max_examples=200, deadline=None)
def test_the_cursor_is_always_on_a_row(steps: list[tuple[str, object]]) -> None:
    model = TableModel(COLUMNS)
    for what, value in steps:
        before = model.cursor_row
        if what == "rows":
            assert isinstance(value, list)
            model.set_rows(tuple(_row(key) for key in value))
        elif what == "move":
            assert isinstance(value, int)
            model.move(value)
        elif what == "filter":
            model.set_filter(str(value))
        else:
            assert value is None or isinstance(value, Sort)
            model.set_sort(value)
        assert (model.cursor == -1) == (not model.view)
        assert (model.cursor_row is None) == (not model.view)
        if what != "move" and before is not None and any(row.key == before.key for row in model.view):
            assert model.cursor_row is not None and model.cursor_row.key == before.key

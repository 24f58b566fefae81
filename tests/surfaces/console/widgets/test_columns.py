from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.surfaces.console.widgets.columns import GAP, LEAST, MARGIN, Column, Place, column_at, lay_out

MODELS = (
    Column("state", "STATE", width=10),
    Column("name", "NAME", fill=1, min_width=14),
    Column("memory", "MEMORY", width=9, align="right", priority=1),
    Column("quant", "QUANT", width=8, priority=3),
    Column("why", "WHY", fill=2, min_width=12, priority=2),
)


def _column(width: int, fill: int, floor: int, priority: int) -> Column:
    return Column("k", "T", width or (0 if fill else 1), fill, floor, "left", priority)


COLUMNS = st.lists(
    st.builds(_column, st.integers(0, 20), st.integers(0, 3), st.integers(0, 12), st.integers(0, 4)),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize(
    ("width", "keys"),
    [
        (120, "state name memory quant why"),
        (63, "state name memory quant why"),
        (62, "state name memory why"),
        (52, "state name memory"),
        (38, "state name"),
        (28, "state name"),
        (27, "state name"),
        (12, "state name"),
        (11, "state"),
        (5, "state"),
        (2, ""),
        (0, ""),
    ],
)
def test_columns_drop_by_priority(width: int, keys: str) -> None:
    assert [MODELS[place.index].key for place in lay_out(MODELS, width)] == keys.split()


def test_what_must_stay_is_cut_where_it_is_widest() -> None:
    places = lay_out(MODELS, 22)
    assert [(MODELS[place.index].key, place.width) for place in places] == [("state", 9), ("name", 9)]


def test_the_rightmost_of_equals_drops_first() -> None:
    columns = [Column(key, key, width=5, priority=1) for key in "abc"]
    assert [place.index for place in lay_out(columns, 15)] == [0, 1]


def test_what_is_left_over_is_shared_by_weight() -> None:
    places = lay_out(MODELS, 120)
    widths = {MODELS[place.index].key: place.width for place in places}
    spare = 120 - 2 * MARGIN - 4 * GAP - (10 + 14 + 9 + 8 + 12)
    assert widths == {
        "state": 10,
        "memory": 9,
        "quant": 8,
        "name": 14 + spare // 3,
        "why": 12 + spare - spare // 3,
    }


def test_important_columns_get_their_width_first() -> None:
    columns = [Column("a", "A", width=10, min_width=4, priority=1), Column("b", "B", width=10, min_width=4)]
    assert [place.width for place in lay_out(columns, 2 * MARGIN + GAP + 8 + 7)] == [5, 10]


@given(COLUMNS, st.integers(0, 140))
@settings(max_examples=200, deadline=None)
def test_places_never_overlap_nor_leave_the_line(columns: list[Column], width: int) -> None:
    places = lay_out(columns, width)
    assert bool(places) == (width > 2 * MARGIN)
    x = MARGIN
    for place in places:
        assert place.x >= x
        assert place.width > 0
        x = place.x + place.width + GAP
    if places:
        assert x - GAP <= width - MARGIN
    # Only what must stay is ever cut, and only when all else has gone.
    cut = [place for place in places if place.width < columns[place.index].floor]
    if len(places) > 1 and cut:
        assert not any(columns[place.index].priority for place in places)
        assert all(place.width >= LEAST for place in cut)
    # What was dropped is not more important than what stayed.
    kept = {place.index for place in places}
    dropped = set(range(len(columns))) - kept
    if kept and dropped:
        ranks = [(columns[index].priority, index) for index in dropped]
        assert min(ranks) > max((columns[index].priority, index) for index in kept)
    # A filling column leaves nothing over.
    if any(columns[index].fill for index in kept) or cut:
        assert x - GAP == width - MARGIN


def test_a_gap_belongs_to_the_column_before_it() -> None:
    places = (Place(0, 1, 3), Place(2, 6, 4))
    assert [column_at(places, x) for x in range(13)] == [None, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, None]


def test_a_column_without_any_width_is_refused() -> None:
    with pytest.raises(ValueError, match="'x'"):
        Column("x", "X")

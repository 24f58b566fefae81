from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.view.node_view import SECTIONS, NodeView, Update, loading_view
from relaydesk.core.view.sections import HealthView, KeysView, Section

updates = st.builds(
    lambda seq, names, stamp: Update(
        seq=seq, **{name: Section(state="ready", as_of_ms=stamp) for name in names}
    ),
    st.integers(0, 1000),
    st.sets(st.sampled_from(SECTIONS)),
    st.integers(0, 10**13),
)


def _section(view: NodeView | Update, name: str) -> Any:
    return getattr(view, name)


def test_update_and_view_have_the_same_sections() -> None:
    assert set(Update.__struct_fields__) == set(NodeView.__struct_fields__) == {"seq", *SECTIONS}


def test_nothing_is_known_at_first() -> None:
    view = loading_view(42)
    assert view.seq == 0
    for name in SECTIONS:
        assert _section(view, name) == Section(state="loading", as_of_ms=42)


@given(st.lists(updates, max_size=20))
@settings(max_examples=150, deadline=None)
def test_sections_are_replaced_whole_by_the_newest(sequence: list[Update]) -> None:
    view = loading_view(1)
    newest: dict[str, Any] = {name: _section(view, name) for name in SECTIONS}
    for update in sequence:
        view = view.replaced(update)
        newest |= {name: section for name in SECTIONS if (section := _section(update, name)) is not None}
        assert view.seq == update.seq
    assert {name: _section(view, name) for name in SECTIONS} == newest


@given(st.lists(updates, min_size=1, max_size=8), st.data())
@settings(max_examples=100, deadline=None)
def test_a_lost_update_is_healed_by_the_next_of_its_sections(sequence: list[Update], data: Any) -> None:
    lost = data.draw(st.integers(0, len(sequence) - 1))
    whole = loading_view(1)
    holed = loading_view(1)
    for number, update in enumerate(sequence):
        whole = whole.replaced(update)
        holed = holed if number == lost else holed.replaced(update)
    for name in SECTIONS:
        renewed = any(_section(update, name) is not None for update in sequence[lost + 1 :])
        if renewed or _section(sequence[lost], name) is None:
            assert _section(whole, name) == _section(holed, name)


def test_replacing_leaves_the_old_view_alone() -> None:
    old = loading_view(1)
    new = old.replaced(
        Update(seq=1, health=Section(state="ready", as_of_ms=2, value=HealthView(in_flight=3)))
    )
    assert old.health.state == "loading"
    assert new.health.value == HealthView(in_flight=3)
    assert new.keys is old.keys


@pytest.mark.parametrize("topics", [None, frozenset({"keys"}), frozenset({"keys", "health"}), frozenset()])
def test_first_update_has_what_was_asked(topics: frozenset[str] | None) -> None:
    view = loading_view(1).replaced(Update(seq=7, keys=Section(state="ready", as_of_ms=2, value=KeysView())))
    update = view.as_update(topics)
    assert update.seq == 7
    for name in SECTIONS:
        expected = _section(view, name) if topics is None or name in topics else None
        assert _section(update, name) == expected

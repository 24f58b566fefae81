"""Sentences and facts as lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import FaultView
from relaydesk.surfaces.console.panes.prose import fact, fault_lines, marked, paragraph, path_fact, sentence
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.scenes import texts


def test_a_fact_is_wrapped_beside_its_name() -> None:
    assert texts(fact("model", "one two three four", 21)) == [
        "model       one two",
        "            three",
        "            four",
    ]
    assert fact("model", "", 30) == ()


def test_a_path_is_broken_behind_a_slash() -> None:
    lines = texts(path_fact("trust", "/home/ada/.local/state/relaydesk/tls/ca.pem", 40))
    assert lines == ["trust       /home/ada/.local/state/", "            relaydesk/tls/ca.pem"]


def test_a_marked_sentence_hangs_behind_its_symbol() -> None:
    assert texts(marked("error", "the disk is full and nothing is left", 22)) == [
        "✗ the disk is full and",
        "  nothing is left",
    ]


def test_a_fault_says_the_next_step_where_there_is_one() -> None:
    assert texts(fault_lines(FaultView("x", safe_text("it broke")), 40)) == ["✗ it broke."]
    assert texts(fault_lines(FaultView("x", safe_text("it broke"), safe_text("mend it")), 40)) == [
        "✗ it broke.",
        "  Next: mend it.",
    ]


def test_sentences_end() -> None:
    assert [sentence(text) for text in ("", "so", "so.", "so?", "so…")] == ["", "so.", "so.", "so?", "so…"]


@given(st.text(max_size=300), st.integers(14, 60))
def test_no_line_is_wider_than_there_is_room(text: str, width: int) -> None:
    safe = safe_text(text, 300)
    lines = (
        *paragraph(safe, width, indent=2),
        *fact("a name", safe, width),
        *path_fact("a name", safe, width),
        *marked("warn", safe, width),
    )
    assert all(line_width(line) <= width for line in lines)

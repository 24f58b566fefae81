from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from relaydesk.core.text import DEFAULT_LIMIT, ELLIPSIS, SafeText, safe_text

FORBIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}

# Plain text, and text made of what an attacker would use.
hostile = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\x1b\x07\x9b\r\n\t\x00\u202e\u2066\u200b\u200d\ufeff\u2028\u2029\ud800\ue000 a[]"),
    ),
    max_size=120,
)


@given(hostile, st.integers(1, 40))
@example("a" * 500, 3)
@example("\x1b" * 5000 + "b", 40)
@example("ab ", 2)
@settings(max_examples=200, deadline=None)
def test_result_is_short_visible_and_stable(text: str, limit: int) -> None:
    safe = safe_text(text, limit)
    assert isinstance(safe, SafeText)
    assert len(safe) <= limit
    assert not {unicodedata.category(char) for char in safe} & FORBIDDEN
    assert safe == safe.strip()
    assert "  " not in safe
    assert all(char == " " or not char.isspace() for char in safe)
    assert safe_text(safe, limit) == safe


@given(st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=30))
@settings(max_examples=200, deadline=None)
def test_harmless_text_is_left_alone(text: str) -> None:
    assert safe_text(text, 30) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;owned\x07title", "]0;ownedtitle"),
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("\x9b31mred", "31mred"),
        ("user\u202egpj.exe", "usergpj.exe"),
        ("a\u2066b\u2069c", "abc"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("two\r\nlines\tand\u2028more", "two lines and more"),
        ("\ud800lone", "lone"),
        ("  padded \n", "padded"),
        (" padded ", "padded"),
        ("two  spaces", "two spaces"),
        ("[@click=app.quit]x[/]", "[@click=app.quit]x[/]"),
        ("", ""),
    ],
)
def test_known_tricks(text: str, shown: str) -> None:
    assert safe_text(text) == shown


def test_a_cut_is_shown_and_counts() -> None:
    assert safe_text("abcdef", 4) == "abc" + ELLIPSIS
    assert safe_text("abcd", 4) == "abcd"
    assert safe_text("ab  cdef", 4) == "ab" + ELLIPSIS
    assert safe_text("abc", 1) == ELLIPSIS


def test_text_hidden_behind_invisible_filler_shows_as_cut() -> None:
    assert safe_text("a" + "\u200b" * 5000 + "b", 16) == "a" + ELLIPSIS


def test_a_megabyte_costs_what_its_head_costs() -> None:
    text = "\u200b" * 8_000_000
    started = time.thread_time()
    assert safe_text(text) == ELLIPSIS
    assert time.thread_time() - started < 0.05


def test_printable_means_what_the_short_cut_takes_it_for() -> None:
    for code in range(0x110000):
        char = chr(code)
        if char.isprintable():
            assert unicodedata.category(char) not in FORBIDDEN
            assert char == " " or not char.isspace()


def test_limit_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        safe_text("a", 0)


def test_default_limit() -> None:
    assert len(safe_text("x" * 10_000)) == DEFAULT_LIMIT

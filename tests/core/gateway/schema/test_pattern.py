"""Regular expressions rewritten for an engine's grammar."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.gateway.schema.pattern import SAFE, PatternError, engine_pattern

SAFE_CLASS = "[ \\x21#-\\x5B\\x5D-\\x7E]"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("^a+$", "^[a]+$"),
        ("^[A-Z]{2}-[0-9]{3}$", "^[A-Z]{2,2}[\\x2D][0-9]{3,3}$"),
        ("^\\d{1,3}\\.\\w?$", "^[0-9]{1,3}[.][0-9A-Z_a-z]?$"),
        ("^(?:ab|c)*?$", "^([a][b]|[c])*$"),
        ("^(?<year>x)(?P<n>y)$", "^([x])([y])$"),
        ("^[^\\W]$", "^[0-9A-Z_a-z]$"),
        ("^[]-]$", None),
        ("^[a\\-\\]z-]$", "^[\\x2D\\x5Daz]$"),
        ("^\\x41\\u0042$", "^[A][B]$"),
        ("^a{2,}$", "^[a]{2,}$"),
        ("^$", "^$"),
        ("a", f"^{SAFE_CLASS}*[a]{SAFE_CLASS}*$"),
        ("^a|b$", f"^([a]{SAFE_CLASS}*|{SAFE_CLASS}*[b])$"),
        ("^.$", f"^{SAFE_CLASS}$"),
        ("", f"^{SAFE_CLASS}*{SAFE_CLASS}*$"),
    ],
)
def test_a_pattern_is_written_anew(pattern: str, found: str | None) -> None:
    if found is None:
        with pytest.raises(PatternError):
            engine_pattern(pattern)
    else:
        assert engine_pattern(pattern) == found


@pytest.mark.parametrize(
    "pattern",
    [
        *("(?=a)b", "(?!a)b", "(?<=a)b", "(a)\\1", "\\bword", "\\p{L}", "a**", "a{3,1}", "a{0}", "^a{1001}$"),
        *("(a", "a)", "[a", "^é$", '^"$', "^\\\\$", "^\\n$", "a$b", "a^", "*a", "(a*)*", "(a?)+", "(|a){2}"),
        *("()", "{", "[z-a]", "^[\\x00]$", "\\", "^[^ -~]$", "a{,}", "x" * 1001, "(" * 40 + "a" + ")" * 40),
    ],
)
def test_what_cannot_be_had_is_said(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"^it"):
        engine_pattern(pattern)


ATOMS = st.sampled_from(
    ["a", "b", "-", "]", "\\.", "\\d", "\\W", "[a-c]", "[^a]", "[\\w-]", ".", "\\x2d", "/"]
)
COUNTS = st.sampled_from(["", "", "*", "+?", "?", "{2}", "{0,2}", "{1,}", "{,2}"])
PATTERNS = st.recursive(
    st.lists(st.tuples(ATOMS, COUNTS).map("".join), min_size=1, max_size=3).map("".join),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, COUNTS).map(lambda pair: f"({pair[0]}){pair[1]}"),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    ),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None)
@given(PATTERNS, st.sampled_from(["", "^"]), st.sampled_from(["", "$"]), st.data())
def test_what_matches_the_new_pattern_matches_the_old(
    pattern: str, start: str, end: str, data: st.DataObject
) -> None:
    given_pattern = start + pattern + end
    try:
        found = engine_pattern(given_pattern)
    except PatternError:
        return
    text = data.draw(st.from_regex(found, fullmatch=True))
    assert set(text) <= SAFE
    assert re.search(given_pattern, text)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab^$|()[]{}*+?.\\-,19dwx:=!<", max_size=12))
def test_any_text_is_a_pattern_or_refused(pattern: str) -> None:
    try:
        found = engine_pattern(pattern)
    except PatternError:
        return
    re.compile(found)

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.json_text import joined, text_of, word_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(TEXTS, min_size=1))
def test_joining_json_joins_the_text(texts: list[str]) -> None:
    data = joined([msgspec.json.encode(text) for text in texts], rb"\n")
    assert msgspec.json.decode(data) == "\n".join(texts)


def test_a_string_stays_as_it_was_written() -> None:
    assert text_of(Raw(rb'"\u00e9\/"'), "x") == rb'"\u00e9\/"'
    assert word_of(Raw(rb'"\u00e9\/"'), "x") == "é/"


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (Raw(), "x is missing"),
        (Raw(b"null"), "x is missing"),
        (Raw(b"[1]"), "x must be a string, not a list"),
    ],
)
def test_what_is_no_string_is_refused(raw: Raw, says: str) -> None:
    for read in (text_of, word_of):
        with pytest.raises(PeerError, match=f"^{says}$") as caught:
            read(raw, "x")
        assert caught.value.fault.param == "x"

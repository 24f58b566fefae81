from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.entries import entries


@given(
    st.lists(
        st.recursive(
            st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
        )
    )
)
def test_entries_are_the_lists_own(values: list[object]) -> None:
    found = entries(msgspec.json.encode(values), "x", 10_000)
    assert [msgspec.json.decode(raw) for raw in found] == values


@pytest.mark.parametrize(
    ("data", "says"),
    [(b'{"a":1}', "x must be a list, not an object"), (b"[1,2,3]", "x has 3 entries, allowed is 2")],
)
def test_what_is_no_short_list_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(PeerError, match=f"^{says}$") as caught:
        entries(data, "x", 2)
    assert (caught.value.fault.code, caught.value.fault.param) == ("invalid_request", "x")


def test_a_list_of_very_many_is_refused_before_it_is_taken_apart() -> None:
    # The end is no JSON: whoever looked at all of it would say so.
    with pytest.raises(PeerError, match="too many entries"):
        entries(b"[" + b"1," * 100_000 + b"!", "x", 10)


def test_commas_inside_text_count_for_nothing() -> None:
    text = 'a,\\",' * 1000
    (raw,) = entries(msgspec.json.encode([text]), "x", 1)
    assert msgspec.json.decode(raw) == text

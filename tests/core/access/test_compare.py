from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.access.compare import digest, matches, same_secret

anything = st.text(st.characters(), max_size=80)  # lone surrogates too


@settings(max_examples=200, deadline=None)
@given(anything, anything)
def test_equal_means_equal(one: str, other: str) -> None:
    assert same_secret(one, one)
    assert matches(one, digest(one))
    assert same_secret(one, other) == (one == other)


def test_near_misses() -> None:
    for other in ("", "secre", "secret ", "Secret", "secret\n", "secret\udcff"):
        assert not matches(other, digest("secret"))

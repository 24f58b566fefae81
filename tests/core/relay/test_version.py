from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.version import (
    OUR_MAJOR,
    OUR_MINOR,
    PROTO_VERSION,
    UNPROBED,
    at_least,
    compatible,
    marks_hops,
    newer_than_ours,
)

# Spellings of numbers that `int` takes and the wire does not.
NOT_NUMBERS = ["+9", "-9", " 9", "9 ", "9_0", "٩", "９", "0x9", "9e0", "1234567890", "x", "9\n", "²"]


@pytest.mark.parametrize(
    "version", ["9", "9.", "9.0", "9.10", "9.x", "9.1 ", "9..", "9.1.2", "09.1", "000000009"]
)
def test_only_the_major_makes_compatible(version: str) -> None:
    assert compatible(version)
    assert not compatible(version, 8)


@pytest.mark.parametrize(
    "version", ["", "1.0", "10.0", ".9", ".", "8.9", "99", *(f"{n}.1" for n in NOT_NUMBERS)]
)
def test_what_is_not_compatible(version: str) -> None:
    assert not compatible(version)


def test_nothing_is_the_oldest_version() -> None:
    assert compatible("", 1)
    assert at_least("", 1, 0)
    assert not at_least("", 1, 1)


@pytest.mark.parametrize(
    "version", ["9.1", "9.2", "9.10", "9.1.3", "9.1.x", "9.1.", "10.0", "10", "10.", "9.01"]
)
def test_versions_that_mark_hops(version: str) -> None:
    assert marks_hops(version)


@pytest.mark.parametrize(
    "version", ["9", "9.", "9.0", "8.99", "", ".", "x.1", "9.x", *(f"9.{n}" for n in NOT_NUMBERS),
                *(f"{n}.1" for n in NOT_NUMBERS)]
)  # fmt: skip
def test_versions_that_promise_no_marker(version: str) -> None:
    assert not marks_hops(version)


def test_an_unprobed_relay_is_usable_and_promises_nothing() -> None:
    assert compatible(UNPROBED)
    assert not marks_hops(UNPROBED)


def test_our_own_version() -> None:
    assert f"{OUR_MAJOR}.{OUR_MINOR}" == PROTO_VERSION
    assert compatible(PROTO_VERSION) and at_least(PROTO_VERSION, OUR_MAJOR, OUR_MINOR)
    assert not newer_than_ours(PROTO_VERSION)
    assert newer_than_ours("9.11") and newer_than_ours("10.0") and not newer_than_ours("9.9")


@given(st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1), st.integers(0, 20), st.integers(0, 20))
def test_versions_compare_as_pairs(major: int, minor: int, low_major: int, low_minor: int) -> None:
    assert at_least(f"{major}.{minor}", low_major, low_minor) == ((major, minor) >= (low_major, low_minor))
    assert compatible(f"{major}.{minor}", low_major) == (major == low_major)


@given(st.text(max_size=30))
def test_any_text_has_an_answer_and_nonsense_promises_nothing(text: str) -> None:
    if marks_hops(text):
        parts = text.split(".")
        assert all(part.isascii() and part.isdigit() for part in parts[:2] if part)
    compatible(text)

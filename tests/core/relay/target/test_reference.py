"""References to operators and nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.reference import Reference, parse_reference


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", Reference(7)),
        (" 7 : 2 ", Reference(7, 2)),
        ("7:0", Reference(7, 0)),
        ("007", Reference(7)),
        (str(2**64 - 1), Reference(2**64 - 1)),
    ],
)
def test_what_is_a_reference(text: str, expected: Reference) -> None:
    assert parse_reference(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "7:",
        ":2",
        "1:2:3",
        "-1",
        "+1",
        "1_0",
        "٧",
        "7 2",
        "0x7",
        str(2**64),
        "1:" + str(2**64),
        " " * 99,
    ],
)
def test_what_is_none(text: str) -> None:
    assert parse_reference(text) is None


def test_an_operator_stands_for_its_nodes() -> None:
    assert Reference(7).matches(NodeRef(7, 0)) and Reference(7).matches(NodeRef(7, 9))
    assert Reference(7, 0).matches(NodeRef(7, 0)) and not Reference(7, 0).matches(NodeRef(7, 9))
    assert not Reference(7).matches(NodeRef(8, 0))


@given(st.text(max_size=30) | st.from_regex(r"[0-9]{1,21}:?[0-9]{0,21}"))
def test_any_text_is_read(text: str) -> None:
    found = parse_reference(text)
    assert found is None or 0 <= found.operator < 2**64

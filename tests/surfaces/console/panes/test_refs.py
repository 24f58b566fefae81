"""References in few cells."""

from __future__ import annotations

import pytest

from relaydesk.surfaces.console.panes.refs import short_ref, shortened


@pytest.mark.parametrize(
    ("ref", "short"),
    [
        ("9007199254740991:12", "9007…0991:12"),
        ("123456789:1", "123456789:1"),
        ("1234567890:1", "1234…7890:1"),
        ("this node", "this node"),
        ("", ""),
    ],
)
def test_long_ids_lose_their_middle_and_short_ones_nothing(ref: str, short: str) -> None:
    assert short_ref(ref) == short


def test_addresses_too() -> None:
    assert shortened("ABCD" + "X" * 50 + "WXYZ") == "ABCD…WXYZ"

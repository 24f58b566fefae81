"""When a key ends, as people write it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.config.expiry import parse_expiry

NOW_MS = 1_773_500_966_000
_DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("never", 0),
        (" NEVER ", 0),
        ("30d", NOW_MS + 30 * _DAY_MS),
        ("12h", NOW_MS + _DAY_MS // 2),
        ("1h30m", NOW_MS + 5_400_000),
        ("1970-01-02", _DAY_MS),
        ("2027-01-31", 1_801_353_600_000),
    ],
)
def test_what_is_understood(text: str, at_ms: int) -> None:
    assert parse_expiry(text, NOW_MS) == at_ms


@pytest.mark.parametrize("text", ["", "soon", "30", "-3d", "2027-13-01", "1234567d", "d"])
def test_what_is_not(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_expiry(text, NOW_MS)


@given(st.text())
def test_any_text_is_a_time_or_a_value_error(text: str) -> None:
    try:
        assert isinstance(parse_expiry(text, NOW_MS), int)
    except ValueError:
        pass

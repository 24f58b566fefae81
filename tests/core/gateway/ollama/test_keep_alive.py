"""How long a model stays: every spelling that clients send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.ollama.keep_alive import FOREVER, MAX_S, keep_alive_s


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (None, None),
        (0, 0),
        ("0", 0),
        ("0s", 0),
        (-0.0, 0),
        (-1, FOREVER),
        ("-1", FOREVER),
        ("-5m", FOREVER),
        (-0.5, FOREVER),
        (1800, 1800),
        ("300", 300),
        (" 5m ", 300),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("+2m", 120),
        (".5m", 30),
        ("100ms", 1),
        ("1us", 1),
        ("1µs", 1),
        (0.2, 1),
        ("24h", 86_400),
        (1e300, MAX_S),
        ("9" * 60, MAX_S),
        ("99999999h", MAX_S),
    ],
)
def test_every_spelling(given: float | str | None, seconds: int | None) -> None:
    assert keep_alive_s(given) == seconds


@pytest.mark.parametrize(
    "given", ["", "m", "5 m", "5d", "five", "1h-30m", "nan", "inf", "1e3", "٣", "9" * 65, "11m" * 21 + "x"]
)
def test_anything_else_is_named(given: str) -> None:
    with pytest.raises(PeerError) as caught:
        keep_alive_s(given)
    assert (caught.value.fault.code, caught.value.fault.param) == ("invalid_request", "keep_alive")


@given(st.one_of(st.text(max_size=80), st.from_regex(r"-?([0-9.]+(ns|us|ms|s|m|h)?){1,4}", fullmatch=True)))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        seconds = keep_alive_s(text)
    except PeerError as error:
        param = error.fault.param
        assert param == "keep_alive"
    else:
        assert seconds is not None
        assert FOREVER <= seconds <= MAX_S


@given(st.floats(allow_nan=False))
def test_any_number_is_read(number: float) -> None:
    seconds = keep_alive_s(number)
    assert seconds is not None
    assert (seconds == FOREVER) == (number < 0)
    assert (seconds == 0) == (number == 0)

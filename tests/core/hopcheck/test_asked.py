from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.hopcheck.asked import (
    HEADER,
    MOST_SILENCE_S,
    Asked,
    Mode,
    asked_header,
    is_nonce,
    parse_asked,
)

NONCE = "0123456789abcdef" * 2


@given(st.binary(min_size=16, max_size=16), st.sampled_from(get_args(Mode)), st.integers(0, 130))
def test_what_is_asked_is_what_is_read(nonce: bytes, mode: Mode, seconds: int) -> None:
    name, value = asked_header(nonce.hex(), mode, float(seconds))
    assert name == HEADER
    assert parse_asked(value) == Asked(nonce.hex(), mode, float(seconds) if mode == "silence" else 0.0)


def test_a_nonce_alone_asks_for_the_stream() -> None:
    assert parse_asked(NONCE) == Asked(NONCE, "stream", 0.0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        NONCE[:-1],
        NONCE.upper(),
        f"{NONCE}; other",
        f"{NONCE}; silence",
        f"{NONCE}; stream=5",
        f"{NONCE}; silence={MOST_SILENCE_S + 1:g}",
        f"{NONCE}; silence=-1",
        f"{NONCE}; silence=1e2",
        f"{NONCE}; silence=٥",
        f"{NONCE}\n",
        f"{NONCE}; stream ",
    ],
)
def test_anything_else_asks_for_nothing(text: str) -> None:
    assert parse_asked(text) is None


@given(st.text(max_size=80))
def test_any_text_can_be_read(text: str) -> None:
    found = parse_asked(text)
    assert found is None or (is_nonce(found.nonce) and 0 <= found.seconds <= MOST_SILENCE_S)

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.hop import RELAY_PATH
from relaydesk.surfaces.network.request_line import place_in

RELAY = b"POST /v1/zs/relay HTTP/1.1\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\n"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (RELAY, RELAY_PATH),
        (b"POST /v1/zs/relay", RELAY_PATH),
        (b"POST /at/home/v1/zs/relay/?a HTTP/1.1", RELAY_PATH),
        (b"POST http://evil/v1/zs/relay HTTP/1.1", RELAY_PATH),
        (b"POST http://evil HTTP/1.1", "/"),
        (b"POST /x?http://evil/v1/zs/relay HTTP/1.1", "/x"),
        (b"POST /v1/zs/%72elay#x HTTP/1.1", RELAY_PATH),
        (HEALTH + b"\r\n" + RELAY + b"bad\r\n\r\n", RELAY_PATH),
        (RELAY + b"\r\n" + HEALTH + b"bad\r\n\r\n", RELAY_PATH),
        (HEALTH + b"Referer: /v1/zs/relay HTTP\r\n\r\n", "/healthz"),
        (HEALTH + b"X /v1/zs/relay\r\n\r\n", "/healthz"),
        (b"nonsense\r\n\r\n", ""),
        (b"", ""),
        (b"\x16\x03\x01\x00\x00", ""),
    ],
)
def test_where_bytes_go(text: bytes, place: str) -> None:
    assert place_in(text, "/at/home") == place


def test_behind_a_request_only_whole_lines_count() -> None:
    for text in (b"5 /v1/zs/relay\r\n", b"a b"):
        assert place_in(text, "", begins=False) == ""
    assert place_in(b"zz\r\n" + RELAY, "", begins=False) == RELAY_PATH
    assert place_in(HEALTH + b"bad\r\n\r\n", "", begins=False) == "/healthz"


@given(
    st.lists(st.sampled_from([RELAY, b" ", b"/", b"\n", b"%", b"://", b"\xff"]), max_size=12).map(b"".join)
)
def test_any_bytes_are_taken(text: bytes) -> None:
    assert isinstance(place_in(text, "/a"), str)

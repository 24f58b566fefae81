from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.hopcheck.head import bodiless, parse_head

NAMES = st.text("AbXx-9", min_size=1, max_size=15).map(lambda each: f"X{each}")
VALUES = st.text([chr(code) for code in range(33, 127)], min_size=1, max_size=20)


@given(st.integers(100, 599), st.lists(st.tuples(NAMES, VALUES), max_size=6))
def test_headers_come_as_they_were_sent(status: int, headers: list[tuple[str, str]]) -> None:
    lines = [f"HTTP/1.1 {status} Fine", *(f"{name}: {value}" for name, value in headers)]
    head = parse_head("\r\n".join(lines).encode())
    assert (head.status, head.headers, head.length, head.chunked) == (status, tuple(headers), None, False)


def test_framing() -> None:
    assert parse_head(b"HTTP/1.1 200\r\nContent-Length: 12").length == 12
    chunked = parse_head(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 3")
    assert (chunked.chunked, chunked.length) == (True, None)
    assert parse_head(b"HTTP/1.0 200 OK\r\nA:").headers == (("A", ""),)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/2 200",
        b"ICY 200 OK",
        b"HTTP/1.1 2x0 OK",
        b"HTTP/1.1",
        b"HTTP/1.1 200 OK\r\nno colon",
        b"HTTP/1.1 200 OK\r\n folded: x",
        b"HTTP/1.1 200 OK\r\nname : x",
        b"HTTP/1.1 200 OK\r\n: x",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1,1",
    ],
)
def test_what_is_no_head(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"cannot be read|no HTTP"):
        parse_head(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_head_or_refused(data: bytes) -> None:
    with suppress(ValueError):
        parse_head(data)


def test_answers_without_a_body() -> None:
    assert bodiless("HEAD", 200)
    assert bodiless("GET", 304)
    assert bodiless("OPTIONS", 204)
    assert not bodiless("POST", 400)

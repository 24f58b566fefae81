from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.engine.infer.http1 import HEAD_LIMIT, ResponseParser

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


def framed(body: list[bytes], framing: str) -> bytes:
    whole = b"".join(body)
    if framing == "length":
        return HEAD + b"Content-Length: %d\r\n\r\n" % len(whole) + whole
    if framing == "chunked":
        chunks = b"".join(b"%x;x=1\r\n%b\r\n" % (len(piece), piece) for piece in body if piece)
        return HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\nTrailer: 1\r\n\r\n"
    return HEAD + b"\r\n" + whole


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.binary(max_size=40), max_size=6),
    st.sampled_from(["length", "chunked", "eof"]),
    st.lists(st.integers(0, 10_000), max_size=12),
)
def test_a_response_reads_the_same_however_it_is_cut(
    body: list[bytes], framing: str, places: list[int]
) -> None:
    parser = ResponseParser()
    got = b"".join(parser.feed(piece) for piece in cut(framed(body, framing), places))
    if framing == "eof":
        assert not parser.done
        parser.feed_eof()
    assert (got, parser.done, parser.status) == (b"".join(body), True, 200)
    assert parser.headers["content-type"] == "text/plain"


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=4), st.integers(1, 200))
def test_a_cut_body_is_an_error(body: list[bytes], missing: int) -> None:
    data = framed(body, "chunked")
    parser = ResponseParser()
    parser.feed(data[: max(0, len(data) - missing)])
    with pytest.raises(PeerError, match="before its answer was complete"):
        parser.feed_eof()


@pytest.mark.parametrize("value", [b"", b"x", b"a b"])
def test_blanks_around_a_value_are_no_part_of_it(value: bytes) -> None:
    parser = ResponseParser()
    parser.feed(b"HTTP/1.1 200 OK\r\nX: \t " + value + b" \t \r\n\r\n")
    assert parser.headers == {"x": value.decode()}


def test_a_line_of_blanks_that_ends_badly_is_refused_at_once() -> None:
    """By a pattern that tries every way to share them out this would take hours."""
    parser = ResponseParser()
    with pytest.raises(PeerError, match="a malformed header"):
        parser.feed(b"HTTP/1.1 200 OK\r\nX:" + b" " * (HEAD_LIMIT - 64) + b"\x00\r\n\r\n")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=120), st.booleans())
def test_garbage_raises_nothing_but_its_own_error(data: bytes, in_body: bool) -> None:
    parser = ResponseParser()
    try:
        if in_body:
            parser.feed(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        parser.feed(data)
        parser.feed_eof()
    except PeerError:
        pass


MALFORMED = {
    "another version": b"HTTP/2 200\r\n\r\n",
    "negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "hex length": b"HTTP/1.1 200 OK\r\nContent-Length: 0x10\r\n\r\n",
    "no colon": b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    "two encodings": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "signed size": HEAD + b"Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n",
    "underscored size": HEAD + b"Transfer-Encoding: chunked\r\n\r\n1_0\r\n",
    "chunk too long": HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
    "endless head": HEAD + b"x: " + b"a" * (HEAD_LIMIT + 1),
    "endless size line": HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 2000,
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_what_is_malformed_is_refused(data: bytes) -> None:
    with pytest.raises(PeerError, match="broken"):
        ResponseParser().feed(data)


def test_an_interim_response_is_skipped() -> None:
    parser = ResponseParser()
    assert parser.feed(b"HTTP/1.1 100 Continue\r\n\r\n" + framed([b"ok"], "length")) == b"ok"
    assert parser.status == 200


def test_bytes_behind_the_end_are_ignored() -> None:
    parser = ResponseParser()
    assert parser.feed(framed([b"ok"], "length") + b"HTTP/1.1 500 More\r\n\r\n") == b"ok"
    assert (parser.done, parser.status) == (True, 200)

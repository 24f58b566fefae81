from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.engine.infer.http1 import HEAD_LIMIT
from relaydesk.engine.relay.outbound.http1 import NodeResponse
from relaydesk.engine.relay.outbound.unreachable import UnreachableError

HEAD = b"HTTP/1.1 200 OK\r\n"


def fed(data: bytes) -> tuple[NodeResponse, bytes]:
    response = NodeResponse()
    return response, response.feed(data)


@pytest.mark.parametrize(
    ("data", "reusable"),
    [
        (HEAD + b"Content-Length: 2\r\n\r\nab", True),
        (HEAD + b"Content-Length: 2\r\nConnection: keep-alive\r\n\r\nab", True),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", True),
        (b"HTTP/1.1 204 X\r\n\r\n", True),
        (HEAD + b"Content-Length: 2\r\nConnection: X, Close\r\n\r\nab", False),
        (HEAD + b"Content-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\n\r\n", False),
        (HEAD + b"Content-Length: 3\r\n\r\nab", False),
        (HEAD + b"\r\nab", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab", False),
    ],
)
def test_whether_the_connection_may_be_used_again(data: bytes, reusable: bool) -> None:
    assert fed(data)[0].reusable is reusable


def test_every_value_of_a_header_is_kept() -> None:
    response, body = fed(HEAD + b"X-Zs-A: 1\r\nx-zs-a: 2\r\nContent-Length: 0\r\n\r\n")
    assert response.fields[:2] == [("x-zs-a", "1"), ("x-zs-a", "2")]
    assert (body, response.done) == (b"", True)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
        HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n",
        HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n",
        HEAD + b"Transfer-Encoding: gzip\r\n\r\n",
        HEAD + b"X: " + b"a" * HEAD_LIMIT + b"\r\n\r\n",
        HEAD + b"X: y\r\n" * (HEAD_LIMIT // 6 + 1) + b"\r\n",
        b"a" * (HEAD_LIMIT + 1),
        HEAD + b"X: a\x00b\r\n\r\n",
        HEAD + b" folded: x\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 099 X\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 16 + b"\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 2000,
    ],
)
def test_what_no_node_may_send(data: bytes) -> None:
    with pytest.raises(UnreachableError) as caught:
        fed(data)
    assert caught.value.kind == "broken"


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.lists(st.integers(0, 10_000), max_size=12)
)
def test_chunks_read_the_same_however_they_are_cut(body: list[bytes], places: list[int]) -> None:
    chunks = b"".join(b"%X;e=1\r\n%b\r\n" % (len(piece), piece) for piece in body)
    data = HEAD + b"Transfer-Encoding: Chunked\r\n\r\n" + chunks + b"0\r\nT: 1\r\n\r\n"
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    response = NodeResponse()
    got = b"".join(response.feed(data[a:b]) for a, b in pairwise(edges))
    assert (got, response.reusable) == (b"".join(body), True)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=160), st.sampled_from([b"", HEAD, HEAD + b"Transfer-Encoding: chunked\r\n\r\n"]))
def test_nothing_but_its_own_error(data: bytes, before: bytes) -> None:
    try:
        response, _ = fed(before + data)
        response.feed_eof()
    except UnreachableError:
        pass

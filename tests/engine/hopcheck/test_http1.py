from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.hopcheck.model import Layer
from relaydesk.engine.hopcheck.door import Door, door_of
from relaydesk.engine.hopcheck.http1 import Got, Send, arrivals, exchange

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter


@asynccontextmanager
async def answering(handle: Callable[[Reader, Writer], Awaitable[None]]) -> AsyncIterator[Door]:
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    layer = Layer("public", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/base", "public")
    try:
        yield door_of(layer, layer)
    finally:
        server.close()


async def got(answer: bytes, send: Send | None = None, *, limit_s: float = 5.0) -> tuple[Got, bytes]:
    asked = bytearray()

    async def handle(reader: Reader, writer: Writer) -> None:
        asked.extend(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with answering(handle) as door:
        found = await exchange(door, send or Send("POST", door.relay, (("X-A", "b"),)), None, limit_s)
    return found, bytes(asked)


async def test_the_request_is_what_was_asked_for_and_no_more() -> None:
    found, asked = await got(b"HTTP/1.1 204 No\r\n\r\n")
    lines = asked.decode().split("\r\n")
    assert lines[0] == "POST /base/v1/zs/relay HTTP/1.1"
    assert [line.partition(":")[0] for line in lines[1:] if line] == [
        "Host",
        "X-A",
        "Content-Length",
        "Connection",
    ]
    assert found.exchange.status == 204
    assert found.exchange.url.endswith("/base/v1/zs/relay")


async def test_case_order_and_duplicates_stay_as_they_came() -> None:
    found, _ = await got(b"HTTP/1.1 200 OK\r\nX-Zs-A: 1\r\nx-zs-a: 2\r\nContent-Length: 2\r\n\r\nhi")
    assert found.exchange.headers == (("X-Zs-A", "1"), ("x-zs-a", "2"), ("Content-Length", "2"))
    assert found.exchange.values("X-ZS-A") == ("1", "2")
    assert (found.exchange.body, found.exchange.kind) == (b"hi", "")


async def test_an_interim_answer_is_not_the_answer() -> None:
    found, _ = await got(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
    assert found.exchange.status == 413


async def test_bodies_by_length_in_chunks_and_to_the_end() -> None:
    chunked, _ = await got(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    )
    assert (chunked.exchange.body, chunked.exchange.kind) == (b"abcde", "")
    ended, _ = await got(b"HTTP/1.1 200 OK\r\n\r\nto the end")
    assert (ended.exchange.body, ended.exchange.kind) == (b"to the end", "")
    kept, _ = await got(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 9000)
    assert len(kept.exchange.body) == 4096


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", "broken"),
        (b"HTTP/1.1 200", "broken"),
        (b"SSH-2.0-x\r\n\r\n", "broken"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "broken"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "broken"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "broken"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"x" * 200_000, "broken"),
    ],
)
async def test_what_is_no_answer(answer: bytes, kind: str) -> None:
    found, _ = await got(answer)
    assert found.exchange.kind == kind
    assert found.exchange.problem


async def test_nobody_silence_and_names_that_lead_nowhere() -> None:
    async def silent(reader: Reader, writer: Writer) -> None:
        await reader.read()
        writer.close()

    async with answering(silent) as door:
        late = await exchange(door, Send("POST", door.relay), None, 0.1)
    assert (late.exchange.status, late.exchange.kind) == (0, "timeout")
    gone = await exchange(door, Send("POST", door.relay), None, 5.0)
    assert (gone.exchange.kind, gone.exchange.problem) == ("refused", "the connection is refused")
    layer = Layer("public", "http://nowhere.invalid", "public")
    lost = await exchange(door_of(layer, layer), Send("GET", "/"), None, 5.0)
    assert lost.exchange.kind == "resolve"


async def test_a_body_is_sent_whole_and_an_early_answer_is_read() -> None:
    seen: list[int] = []

    async def handle(reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        seen.append(len(await reader.readexactly(300_000)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with answering(handle) as door:
        whole = await exchange(door, Send("POST", door.relay, body=300_000), None, 5.0)
    assert (seen, whole.exchange.status, whole.exchange.sent) == ([300_000], 200, 300_000)
    early, _ = await got(b"HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno", Send("POST", "/", body=30_000))
    assert early.exchange.status == 413


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 200)), max_size=20))
def test_arrivals_are_by_bytes_however_they_were_cut(pieces: list[tuple[int, int]]) -> None:
    times = sorted(pieces)
    found = arrivals(times, 64, 6)
    assert list(found) == sorted(found)
    assert len(found) == min(6, sum(size for _, size in times) // 64)

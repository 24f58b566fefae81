"""The client against a server whose every byte the test decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest

from relaydesk.core.errors import PeerError
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.infer.client import EngineClient

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Server:
    """Counts connections and requests, and answers with ``handler`` once a request is read."""

    def __init__(self) -> None:
        self.connections = 0
        self.requests: list[bytes] = []
        self.left = asyncio.Event()
        self.handler: Handler | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            self.requests.append(head + await reader.readexactly(length))
            assert self.handler is not None
            await self.handler(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.left.set()


@pytest.fixture
async def server(runtime_dir: Path) -> AsyncIterator[Server]:
    runtime_dir.mkdir()
    one = Server()
    listener = await asyncio.start_unix_server(one.serve, str(runtime_dir / "s.sock"))
    yield one
    listener.close()


@pytest.fixture
async def client(server: Server, runtime_dir: Path) -> AsyncIterator[EngineClient]:
    one = EngineClient(str(runtime_dir / "s.sock"), "k" * 8, SystemClock(), ahead=0, idle_timeout_s=2)
    yield one
    await one.aclose()


def answer(*parts: bytes, pause_s: float = 0.0) -> Handler:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_s)

    return handler


async def collect(client: EngineClient, **options: bool) -> list[bytes]:
    async with await client.stream("/v1/chat/completions", b"{}", **options) as stream:
        return [event async for event in stream]


async def test_events_come_one_by_one_and_the_request_is_whole(server: Server, client: EngineClient) -> None:
    server.handler = answer(
        HEAD + chunk(b"data: 1\n\nda"),
        chunk(b"ta: 2\n\n: ping\n\n"),
        chunk(b"data: [DONE]\n\n"),
        pause_s=0.01,
    )
    assert await collect(client) == [b"1", b"2"]
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    assert b"Authorization: Bearer kkkkkkkk" in head
    assert b"Connection: close" in head
    assert body == b"{}"


@pytest.mark.parametrize(
    "parts",
    [
        (HEAD + chunk(b"data: 1\n\n"),),
        (HEAD + chunk(b"data: 1\n\n") + b"0\r\n\r\n",),
        (HEAD + chunk(b"data: 1\n\n") + b"5\r\nda",),
    ],
    ids=["connection ends", "body ends without the mark", "cut within a chunk"],
)
async def test_a_stream_that_ends_early_says_so_after_its_events(
    server: Server, client: EngineClient, parts: tuple[bytes, ...]
) -> None:
    server.handler = answer(*parts)
    async with await client.stream("/v1/chat/completions", b"{}") as stream:
        assert await anext(stream) == b"1"
        with pytest.raises(PeerError) as caught:
            await anext(stream)
    assert caught.value.fault.code == "engine_failed"


async def test_a_route_without_the_mark_may_just_end(server: Server, client: EngineClient) -> None:
    server.handler = answer(HEAD + chunk(b"data: 1\n\n") + b"0\r\n\r\n")
    assert await collect(client, ends_with_done=False) == [b"1"]


async def test_a_refusal_is_a_status_with_its_body(server: Server, client: EngineClient) -> None:
    server.handler = answer(b'HTTP/1.1 400 Bad Request\r\nContent-Length: 13\r\n\r\n{"error": {}}')
    async with await client.stream("/v1/chat/completions", b"{}") as stream:
        assert (stream.status, stream.error_body) == (400, b'{"error": {}}')
        assert [event async for event in stream] == []


async def test_an_endless_refusal_is_cut(server: Server, client: EngineClient) -> None:
    server.handler = answer(b"HTTP/1.1 500 Oh\r\n\r\n", *[b"x" * 65536] * 50)
    async with await client.stream("/v1/chat/completions", b"{}") as stream:
        assert stream.status == 500
        assert len(stream.error_body) <= 64 * 1024


async def test_leaving_early_closes_the_connection_at_once(server: Server, client: EngineClient) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + chunk(b"data: 1\n\n"))
        await reader.read()  # returns when the client is gone

    server.handler = handler
    async with await client.stream("/v1/chat/completions", b"{}") as stream:
        assert await anext(stream) == b"1"
        assert not server.left.is_set()
    async with asyncio.timeout(1):
        await server.left.wait()


async def test_cancelling_before_the_head_closes_the_connection(server: Server, client: EngineClient) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    server.handler = handler
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await client.stream("/v1/chat/completions", b"{}")
    async with asyncio.timeout(1):
        await server.left.wait()


async def test_silence_ends_a_stream(server: Server, runtime_dir: Path) -> None:
    server.handler = answer(HEAD + chunk(b"data: 1\n\n"), pause_s=5)
    client = EngineClient(str(runtime_dir / "s.sock"), "k", SystemClock(), ahead=0, idle_timeout_s=0.2)
    async with await client.stream("/v1/chat/completions", b"{}") as stream:
        assert await anext(stream) == b"1"
        with pytest.raises(PeerError, match="said nothing for"):
            await anext(stream)


async def test_a_slow_reader_holds_the_engine_back_and_loses_nothing(
    server: Server, client: EngineClient
) -> None:
    event = chunk(b"data: " + b"x" * 4000 + b"\n\n")
    sent = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(HEAD)
        for _ in range(2000):
            writer.write(event)
            await writer.drain()
            sent += 1
        writer.write(chunk(b"data: [DONE]\n\n"))
        await writer.drain()

    server.handler = handler
    async with await client.stream("/v1/chat/completions", b"{}") as stream:
        await asyncio.sleep(0.3)
        assert sent < 400  # 8 MB would have come by now; some 256 KiB and the sockets' buffers did
        assert len([item async for item in stream]) == 2000


async def test_a_whole_answer_of_any_status(server: Server, client: EngineClient) -> None:
    server.handler = answer(b"HTTP/1.1 501 No\r\nContent-Length: 2\r\n\r\n{}")
    reply = await client.json("POST", "/v1/embeddings", b"{}")
    assert (reply.status, reply.body) == (501, b"{}")
    assert not await client.health()


async def test_connections_opened_ahead_are_used_once_each(server: Server, runtime_dir: Path) -> None:
    server.handler = answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    client = EngineClient(str(runtime_dir / "s.sock"), "k", SystemClock(), ahead=2)
    for _ in range(5):
        assert (await client.json("GET", "/health")).status == 200
        await asyncio.sleep(0.02)
    assert len(server.requests) == 5
    assert server.connections == 7  # one a request, and two waiting
    await client.aclose()


async def test_a_spare_that_died_unseen_costs_no_request(server: Server, runtime_dir: Path) -> None:
    calls = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            writer.transport.abort()  # as the engine does with a connection that waited too long
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    server.handler = handler
    client = EngineClient(str(runtime_dir / "s.sock"), "k", SystemClock(), ahead=1)
    assert (await client.json("GET", "/health")).status == 200
    await asyncio.sleep(0.05)
    assert (await client.json("GET", "/health")).status == 200
    assert calls == 3
    await client.aclose()


async def test_a_failed_answer_is_not_asked_for_twice(server: Server, client: EngineClient) -> None:
    server.handler = answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}")
    with pytest.raises(PeerError):
        await client.json("POST", "/v1/embeddings", b"{}")
    assert len(server.requests) == 1


async def test_no_engine_is_one_sentence(runtime_dir: Path) -> None:
    client = EngineClient(str(runtime_dir / "none.sock"), "k", SystemClock())
    with pytest.raises(PeerError, match="does not answer on its socket"):
        await client.stream("/v1/chat/completions", b"{}")
    assert not await client.health()


async def test_a_path_cannot_smuggle_a_header(client: EngineClient) -> None:
    with pytest.raises(ValueError, match="not a path"):
        await client.json("GET", "/x HTTP/1.1\r\nHost: y")


async def relaxed(client: EngineClient) -> tuple[list[bytes], list[float]]:
    """All events of a stream whose reader is in no hurry behind the first, and when each was read."""
    loop = asyncio.get_running_loop()
    events, times = [], []
    async with await client.stream("/v1/chat/completions", b"{}") as stream:
        async for event in stream:
            events.append(event)
            times.append(loop.time())
            if len(events) == 1:
                stream.relax()
    return events, times


async def test_without_hurry_events_come_in_batches_and_the_last_at_once(
    server: Server, client: EngineClient
) -> None:
    tokens = [chunk(b'data: {"n":%d}\n\n' % number) for number in range(30)]
    last = chunk(b'data: {"usage":{"completion_tokens":30}}\n\n')
    end = chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    server.handler = answer(HEAD, *tokens, last, end, pause_s=0.01)
    events, times = await relaxed(client)
    assert events[:-1] == [b'{"n":%d}' % number for number in range(30)]
    assert events[-1] == b'{"usage":{"completion_tokens":30}}'
    batches = 1 + sum(later - before > 0.005 for before, later in pairwise(times))
    # 0.3 s of tokens: the first, a batch every tenth of a second, and the rest with the last event.
    assert 3 <= batches <= 8


async def test_without_hurry_nothing_is_lost_however_the_bytes_come(
    server: Server, client: EngineClient
) -> None:
    body = b"".join(chunk(b'data: {"n":%d}\n\n' % number) for number in range(40))
    whole = HEAD + body + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    for size in (1, 7, 61):
        parts = [whole[at : at + size] for at in range(0, len(whole), size)]
        server.handler = answer(*parts)
        events, _ = await relaxed(client)
        assert events == [b'{"n":%d}' % number for number in range(40)]


async def test_without_hurry_an_engine_that_dies_has_its_events_read_first(
    server: Server, client: EngineClient
) -> None:
    tokens = [chunk(b'data: {"n":%d}\n\n' % number) for number in range(5)]
    server.handler = answer(HEAD, *tokens, pause_s=0.005)
    seen = []
    with pytest.raises(PeerError) as caught:  # noqa: PT012  (the stream fails while it is read)
        async with await client.stream("/v1/chat/completions", b"{}") as stream:
            stream.relax()
            async for event in stream:
                seen.append(event)  # noqa: PERF401  (what came before the failure must be kept)
    assert caught.value.fault.code == "engine_failed"
    assert seen == [b'{"n":%d}' % number for number in range(5)]


async def test_without_hurry_a_long_answer_is_still_read(server: Server, client: EngineClient) -> None:
    text = b"x" * 1000
    tokens = [chunk(b'data: "%b"\n\n' % text) for _ in range(400)]
    server.handler = answer(HEAD + b"".join(tokens) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    events, _ = await relaxed(client)
    assert len(events) == 400

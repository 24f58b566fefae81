from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from relaydesk.engine.clock import SystemClock
from relaydesk.engine.relay.outbound import outbound as module
from relaydesk.engine.relay.outbound.outbound import Outbound, Reply, UnreachableError
from tests.support.clock import FakeClock
from tests.support.hop_rig import Do, Got, Target, answer


def client(**options: Any) -> Outbound:
    return Outbound(
        options.pop("clock", SystemClock()),
        allow_private=lambda: options.get("private", True),
        tls=ssl.create_default_context,
        left=options.get("left", lambda: None),
    )


async def ask(outbound: Outbound, target: Target, body: Any = b"", **options: Any) -> Reply:
    url = f"http://127.0.0.1:{target.port}{options.pop('path', '/v1/models')}"
    return await outbound.send(
        url,
        options.pop("method", "POST"),
        options.pop("headers", []),
        body,
        head_s=options.pop("head_s", 5),
        **options,
    )


async def failure(outbound: Outbound, target: Target, body: Any = b"", **options: Any) -> UnreachableError:
    async def whole() -> None:
        async with await ask(outbound, target, body, **options) as reply:
            await reply.read(1 << 20)

    with pytest.raises(UnreachableError) as caught:
        await whole()
    return caught.value


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not true():
            await asyncio.sleep(0.005)


def sends(data: bytes, *, close: bool = False, wait: asyncio.Event | None = None) -> Do:
    async def do(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _got: Got) -> None:
        writer.write(data)
        if close:
            writer.close()
        if wait is not None:
            await wait.wait()

    return do


async def pieces(*each: bytes) -> AsyncIterator[bytes]:
    for piece in each:
        yield piece


async def test_only_what_was_given_is_sent() -> None:
    outbound = client()
    async with Target() as target:
        reply = await ask(
            outbound, target, b"body", path="/v1/models/a?x=..&y=%2e", headers=[("Content-Type", "a/b")]
        )
        assert (reply.status, reply.headers["CONTENT-TYPE"], await reply.read(9)) == (
            200,
            "text/plain",
            b"fine",
        )
        assert target.got[0].head == (
            f"POST /v1/models/a?x=..&y=%2e HTTP/1.1\r\nHost: 127.0.0.1:{target.port}\r\n"
            "Accept-Encoding: identity\r\nContent-Type: a/b\r\nContent-Length: 4\r\n\r\n"
        )
        assert target.got[0].body == b"body"
        await (await ask(outbound, target, method="GET")).read(9)
        assert "content-length" not in target.got[1].headers
    await outbound.aclose()


async def test_bodies_that_are_iterated() -> None:
    outbound = client()
    async with Target() as target:
        for length in (None, 6):
            reply = await ask(outbound, target, pieces(b"abc", b"", b"def"), length=length)
            assert await reply.read(9) == b"fine"
            assert target.got[-1].body == b"abcdef"
        assert target.got[0].headers["transfer-encoding"] == "chunked"
        assert target.got[1].headers["content-length"] == "6"
        for wrong in (5, 7):
            with pytest.raises(ValueError, match="announced"):
                await ask(outbound, target, pieces(b"abc", b"def"), length=wrong)

        async def broken() -> AsyncIterator[bytes]:
            yield b"abc"
            raise RuntimeError("the client is gone")

        with pytest.raises(RuntimeError, match="client is gone"):
            await ask(outbound, target, broken())
        await until(lambda: target.open == outbound.resting)
    await outbound.aclose()


@pytest.mark.parametrize(
    "options",
    [
        {"headers": [("X", "a\r\nEvil: 1")]},
        {"headers": [("X y", "a")]},
        {"headers": [("Host", "other")]},
        {"headers": [("transfer-encoding", "chunked")]},
        {"path": "/a b"},
        {"path": "/a#b"},
        {"path": "/a\r\nEvil: 1"},
        {"method": "GET /x"},
    ],
)
async def test_what_would_not_be_one_request(options: dict[str, Any]) -> None:
    async with Target() as target:
        with pytest.raises(ValueError, match=r"header|URL|method"):
            await ask(client(), target, **options)
        assert target.connections == 0


@pytest.mark.parametrize(
    "url",
    ["ftp://a/", "http://user@a/", "http://a:0/", "http://a:99999/", "//a/", "https://a\\b/", "http://"],
)
async def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        await client().send(url, "GET", [], head_s=1)


async def test_plain_http_is_for_labs() -> None:
    with pytest.raises(UnreachableError) as caught:
        await client(private=False).send("http://a.example/", "GET", [], head_s=1)
    assert caught.value.kind == "refused_address"


async def test_a_connection_is_used_again() -> None:
    outbound = client()
    async with Target() as target:
        for _ in range(3):
            await (await ask(outbound, target)).read(9)
        assert (target.connections, outbound.resting) == (1, 1)
        replies = [await ask(outbound, target) for _ in range(3)]
        for reply in replies:
            assert await reply.read(9) == b"fine"
        assert (target.connections, outbound.resting) == (3, 3)
    await outbound.aclose()
    assert outbound.resting == 0


async def test_a_pooled_connection_that_was_closed_is_no_failure() -> None:
    """Whether its end is known when the next request is made, or only comes in answer to it."""
    outbound = client()

    async def once(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _got: Got) -> None:
        if len(target.got) in (2, 4):
            writer.close()  # takes the request and goes: the client cannot know that before
            raise ConnectionError
        writer.write(b"HTTP/1.1 200 X\r\nContent-Length: 1\r\n\r\nx")

    async with Target(once) as target:
        await (await ask(outbound, target)).read(9)
        assert await (await ask(outbound, target, b"again")).read(9) == b"x"
        assert [got.body for got in target.got] == [b"", b"again", b"again"]
        # A body that cannot be repeated is not sent where it would have to be.
        assert outbound.resting == 1
        with pytest.raises(UnreachableError):
            await ask(outbound, target, pieces(b"once"))
        assert [got.body for got in target.got][3:] == [b"once"]
    await outbound.aclose()


async def test_a_request_goes_out_twice_only_if_nothing_came_back() -> None:
    outbound = client()

    async def half(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _got: Got) -> None:
        if len(target.got) == 1:
            writer.write(b"HTTP/1.1 200 X\r\nContent-Length: 1\r\n\r\nx")
            return
        writer.write(b"HTTP/1.1 2")
        await writer.drain()
        writer.close()
        raise ConnectionError

    async with Target(half) as target:
        await (await ask(outbound, target)).read(9)
        assert (await failure(outbound, target)).kind == "broken"
        assert len(target.got) == 2
        # A fresh connection that is closed at once is a failure the first time.
        assert (await failure(outbound, target)).kind == "broken"
        assert len(target.got) == 3
    await outbound.aclose()


async def test_connections_rest_for_a_while_and_not_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REST_EACH", 2)
    monkeypatch.setattr(module, "REST_S", 0.05)
    clock = FakeClock()
    outbound = client(clock=clock)
    async with Target() as target:
        replies = [await ask(outbound, target) for _ in range(4)]
        for reply in replies:
            await reply.read(9)
        assert outbound.resting == 2
        await asyncio.sleep(0.1)
        assert outbound.resting == 2
        clock.advance(1)
        await until(lambda: outbound.resting == 0)
        await until(lambda: target.open == 0)
    await outbound.aclose()


async def test_every_end_of_a_connection_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever overwrites free memory must know: one that rests ends long after its last request."""
    monkeypatch.setattr(module, "REST_S", 0.05)
    told: list[str] = []
    clock = FakeClock()
    outbound = client(clock=clock, left=lambda: told.append("left"))
    async with Target() as target:
        await (await ask(outbound, target)).read(9)
        assert (outbound.resting, told) == (1, [])
        clock.advance(1)
        await until(lambda: outbound.resting == 0)
        assert told == ["left"]
        await (await ask(outbound, target)).aclose()
        assert told == ["left"] * 2, "an answer that nobody reads"
        target.do = sends(b"", close=True)
        await failure(outbound, target)
        assert told == ["left"] * 3
    await outbound.aclose()


async def test_a_target_that_closes_or_talks_unasked_is_not_kept() -> None:
    outbound = client()
    for surplus in (False, True):
        talk = asyncio.Event()

        async def unasked(
            _reader: asyncio.StreamReader,
            writer: asyncio.StreamWriter,
            _got: Got,
            talk: asyncio.Event = talk,
            surplus: bool = surplus,
        ) -> None:
            writer.write(b"HTTP/1.1 200 X\r\nContent-Length: 1\r\n\r\nx")
            await talk.wait()
            if surplus:
                writer.write(b"HTTP/1.1 200 X\r\nContent-Length: 4\r\n\r\nevil")
            else:
                writer.close()

        async with Target(unasked) as target:
            assert await (await ask(outbound, target)).read(9) == b"x"
            assert outbound.resting == 1
            talk.set()
            await until(lambda: outbound.resting == 0)
            assert await (await ask(outbound, target)).read(9) == b"x"
            await until(lambda: outbound.resting == 0)
    await outbound.aclose()


async def test_hostile_answers() -> None:
    outbound = client()
    long_head = b"HTTP/1.1 200 X\r\n" + b"X: %s\r\n" % (b"y" * 1000) * 1000
    redirect = b"HTTP/1.1 302 X\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n"
    bomb = gzip.compress(bytes(1 << 20))
    async with Target() as target:
        for data in (
            long_head,
            b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\n\r\n",
            b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nshort",
            b"nonsense\r\n\r\n",
            b"",
        ):
            target.do = sends(data, close=True)
            assert (await failure(outbound, target)).kind == "broken"
        # What is strange but whole comes back as it is.
        target.do = sends(redirect)
        reply = await ask(outbound, target)
        assert (reply.status, await reply.read(9)) == (302, b"")
        target.do = answer(bomb, headers=[("Content-Encoding", "gzip")])
        assert await (await ask(outbound, target)).read(len(bomb)) == bomb
        target.do = answer(b"x" * 1000)
        reply = await ask(outbound, target)
        with pytest.raises(UnreachableError, match="longer than 999"):
            await reply.read(999)
        target.do = sends(b"HTTP/1.1 200 X\r\n\r\nuntil the end", close=True)
        assert await (await ask(outbound, target)).read(99) == b"until the end"
    await outbound.aclose()


async def test_targets_that_keep_silent() -> None:
    outbound, wait = client(), asyncio.Event()
    async with Target(sends(b"", wait=wait)) as target:
        assert (await failure(outbound, target, head_s=0.05)).kind == "timeout"
        target.do = sends(b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nhalf", wait=wait)
        assert (await failure(outbound, target, silence_s=0.05)).kind == "timeout"

        async def deaf(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter, _got: Got) -> None:
            await wait.wait()

        target.do = deaf
        error = await failure(outbound, target, head_s=0.05)
        assert error.kind == "timeout"
    wait.set()
    await outbound.aclose()


async def test_an_answer_before_the_request_is_whole() -> None:
    """It comes back at once, and what is left of the request is never taken for another."""
    outbound = client()
    forever = asyncio.Event()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"first")
        writer.write(b"HTTP/1.1 413 X\r\nContent-Length: 2\r\n\r\nno")
        assert await reader.read() == b"\r\n"
        forever.set()

    async def endless() -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.Event().wait()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reply = await outbound.send(f"http://127.0.0.1:{port}/", "POST", [], endless(), head_s=5)
    assert (reply.status, await reply.read(9)) == (413, b"no")
    await reply.aclose()
    assert outbound.resting == 0
    await asyncio.wait_for(forever.wait(), 5)
    server.close()
    await outbound.aclose()


async def test_who_does_not_read_is_not_read_for() -> None:
    """Back-pressure reaches the target: of 64 MiB it gets rid of what buffers hold."""
    outbound = client()
    sent = 0

    async def flood(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _got: Got) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 X\r\n\r\n")
        for _ in range(1024):
            writer.write(bytes(1 << 16))
            await writer.drain()
            sent += 1 << 16

    async with Target(flood) as target:
        reply = await ask(outbound, target)
        await until(lambda: sent > 0)
        before = -1
        while sent != before:
            before = sent
            await asyncio.sleep(0.1)
        assert sent < 16 << 20
        await reply.aclose()
        await until(lambda: target.open == 0)
    await outbound.aclose()


async def test_a_body_that_flows_stops_when_it_is_told() -> None:
    outbound = client()
    async with Target(answer(b"x" * 300_000)) as target:
        reply = await ask(outbound, target)
        got = bytearray()
        stops = 0

        def sink(chunk: bytes) -> bool:
            got.extend(chunk)
            return False

        async with asyncio.timeout(5):
            while not await reply.flow(sink):
                stops += 1
        assert (bytes(got), stops > 0, outbound.resting) == (b"x" * 300_000, True, 1)
    await outbound.aclose()


async def test_closing_ends_what_runs() -> None:
    outbound, wait = client(), asyncio.Event()
    async with Target(sends(b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nhalf", wait=wait)) as target:
        reply = await ask(outbound, target)
        await outbound.aclose()
        with pytest.raises(UnreachableError):
            await reply.read(99)
        with pytest.raises(UnreachableError):
            await ask(outbound, target)
    wait.set()

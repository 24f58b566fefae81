"""A foreign engine: a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from relaydesk.core.errors import LocalError, PeerError
from relaydesk.engine.infer.url_engine import UrlEngine, parse_engine_url


class Server:
    def __init__(self) -> None:
        self.url = ""
        self.mode = "done"
        self.seen: list[tuple[str, str]] = []
        self.left = asyncio.Event()

    async def chat(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.headers.get("Authorization", ""), await request.text()))
        if self.mode == "redirect":
            raise web.HTTPFound("http://127.0.0.1:1/elsewhere")
        if self.mode == "refuse":
            return web.json_response({"error": "no"}, status=422)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: 1\n\nda")
        if self.mode == "hold":
            try:
                await asyncio.sleep(30)
            finally:
                self.left.set()
        await response.write(b"ta: 2\n\n")
        if self.mode == "done":
            await response.write(b"data: [DONE]\n\n")
        if self.mode == "cut" and request.transport is not None:
            request.transport.abort()
        return response

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": []}, status=200 if self.mode == "done" else 500)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    one = Server()
    app = web.Application()
    app.router.add_post("/base/v1/chat/completions", one.chat)
    app.router.add_get("/base/v1/models", one.models)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    one.url = f"http://127.0.0.1:{runner.addresses[0][1]}/base/v1/"
    yield one
    await runner.cleanup()


@pytest.fixture
async def engine(server: Server) -> AsyncIterator[UrlEngine]:
    one = UrlEngine(server.url, "their-key", idle_timeout_s=2)
    yield one
    await one.aclose()


async def collect(engine: UrlEngine, **options: bool) -> list[bytes]:
    async with await engine.stream("/v1/chat/completions", b'{"a": 1}', **options) as stream:
        return [event async for event in stream]


async def test_it_streams_with_its_own_key_under_its_base_path(server: Server, engine: UrlEngine) -> None:
    assert await collect(engine) == [b"1", b"2"]
    assert server.seen == [("Bearer their-key", '{"a": 1}')]
    assert await engine.health()
    server.mode = "plain"
    assert not await engine.health()
    assert await collect(engine, ends_with_done=False) == [b"1", b"2"]
    assert (await engine.json("GET", "/v1/models")).status == 500


@pytest.mark.parametrize("mode", ["plain", "cut"])
async def test_a_stream_that_ends_early_says_so(server: Server, engine: UrlEngine, mode: str) -> None:
    server.mode = mode
    with pytest.raises(PeerError) as caught:
        await collect(engine)
    assert caught.value.fault.code == "engine_failed"
    assert "127.0.0.1" not in caught.value.fault.sentence


async def test_leaving_closes_the_connection(server: Server, engine: UrlEngine) -> None:
    server.mode = "hold"
    async with await engine.stream("/v1/chat/completions", b"{}") as stream:
        assert await anext(stream) == b"1"
    async with asyncio.timeout(1):
        await server.left.wait()


async def test_a_refusal_keeps_its_status_and_body(server: Server, engine: UrlEngine) -> None:
    server.mode = "refuse"
    async with await engine.stream("/v1/chat/completions", b"{}") as stream:
        assert (stream.status, stream.error_body) == (422, b'{"error": "no"}')
        assert [event async for event in stream] == []


async def test_a_redirect_is_not_followed_with_the_key(server: Server, engine: UrlEngine) -> None:
    server.mode = "redirect"
    with pytest.raises(PeerError, match="redirect"):
        await collect(engine)


async def test_silence_ends_a_stream(server: Server) -> None:
    server.mode = "hold"
    engine = UrlEngine(server.url, idle_timeout_s=0.2)
    with pytest.raises(PeerError, match="said nothing"):
        await collect(engine)
    assert server.seen[0][0] == ""
    await engine.aclose()


async def test_no_server_is_one_sentence_without_its_address() -> None:
    engine = UrlEngine("http://127.0.0.1:1")
    with pytest.raises(PeerError, match="cannot be reached") as caught:
        await engine.json("GET", "/v1/models")
    assert "127.0.0.1" not in caught.value.fault.sentence
    assert not await engine.health()
    await engine.aclose()


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("http://10.0.0.7:8000/v1", "http://10.0.0.7:8000"),
        (" https://h.example/api/v1/ ", "https://h.example/api"),
        ("http://[::1]:11434", "http://[::1]:11434"),
    ],
)
def test_a_base_url_is_taken_with_or_without_its_version(text: str, base: str) -> None:
    assert str(parse_engine_url(text)).rstrip("/") == base


@pytest.mark.parametrize(
    "text",
    [
        "",
        "h.example:80",
        "ftp://h/",
        "http://",
        "http://u:p@h/",
        "http://h/?k=1",
        "http://h/#x",
        "http://h:99999",
    ],
)
def test_what_is_no_base_url_is_refused(text: str) -> None:
    with pytest.raises(LocalError) as caught:
        parse_engine_url(text)
    assert caught.value.fault.code == "bad_setting"

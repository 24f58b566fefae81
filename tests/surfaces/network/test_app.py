from __future__ import annotations

import asyncio
import logging
import zlib
from typing import Any
from urllib.parse import unquote

import aiohttp
import pytest
from aiohttp import web

from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.hop import RELAY_PATH
from relaydesk.surfaces.network import server as server_module
from relaydesk.surfaces.network.app import make_network_app
from relaydesk.surfaces.network.asked import Asked
from relaydesk.surfaces.network.body import Body
from relaydesk.surfaces.network.cors import ALLOWED, EXPOSED, own_headers
from relaydesk.surfaces.network.state import Network, Route
from tests.support.hop_rig import HopRig, Target, hop_headers, raw, request_bytes

MARKER = "X-Zs-Relay-Hop"


async def asked(rig: HopRig, method: str, path: str, **options: Any) -> tuple[int, Any, bytes]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, rig.url + path, **options) as reply,
    ):
        return reply.status, reply.headers, await reply.read()


async def fails(_asked: Asked) -> web.StreamResponse:
    raise RuntimeError("a secret")


async def refuses(_asked: Asked) -> web.StreamResponse:
    raise WireError("no_capacity", "no slot is free")


async def tells(asked: Asked) -> web.StreamResponse:
    return web.Response(text=asked.rest or asked.place, headers=own_headers(asked.place))


async def breaks_off(asked: Asked) -> web.StreamResponse:
    response = web.StreamResponse(headers=own_headers(asked.place))
    await response.prepare(asked)
    await response.write(b"half")
    raise TimeoutError


async def counts(asked: Asked) -> web.StreamResponse:
    return web.Response(text=str(len(await Body(asked, 1000).whole())), headers=own_headers(asked.place))


ROUTES = (
    Route("POST", "/counts", counts),
    Route("GET", "/fails", fails),
    Route("POST", "/refuses", refuses),
    Route("GET", "/v1/models", tells),
    Route("GET", "/v1/models/{id}", tells),
    Route("GET", "/breaks", breaks_off),
)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/v1/models/a/b", 404, "not_found"),
        ("GET", "/v1/zs/relay/x", 404, "not_found"),
        ("DELETE", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/fails", 500, "internal_error"),
        ("POST", "/refuses", 429, "no_capacity"),
        ("GET", RELAY_PATH, 405, "method_not_allowed"),
        ("PUT", RELAY_PATH, 405, "method_not_allowed"),
        ("POST", RELAY_PATH, 400, "relay_bad_target"),
        ("POST", RELAY_PATH + "/", 400, "relay_bad_target"),
        ("POST", RELAY_PATH + "?x=1", 400, "relay_bad_target"),
        ("POST", "/at/home" + RELAY_PATH, 400, "relay_bad_target"),
        ("POST", "/at/home" + RELAY_PATH + "//", 400, "relay_bad_target"),
        ("POST", "//v1/zs//relay", 400, "relay_bad_target"),
        ("POST", "/at/home/v1/zs%2Frelay", 400, "relay_bad_target"),
        ("POST", "/at/homes" + RELAY_PATH, 404, "not_found"),
    ],
)
async def test_every_refusal_is_readable_and_marked_where_it_must_be(
    method: str, path: str, status: int, code: str
) -> None:
    async with HopRig(routes=ROUTES, prefix="/at/home") as rig:
        found, headers, body = await asked(rig, method, path)
        assert (found, headers["content-type"]) == (status, "application/json")
        assert f'"code":"{code}"'.encode() in body
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert MARKER in headers["Access-Control-Expose-Headers"]
        marked = (
            RELAY_PATH in unquote(path).replace("//", "/") and "homes" not in path and not path.endswith("/x")
        )
        assert headers.get(MARKER) == ("1" if marked else None)
        assert ("Retry-After" in headers) is (status == 429)
        assert ("Allow" in headers) is (status == 405)


async def test_what_every_browser_may_ask(caplog: pytest.LogCaptureFixture) -> None:
    async with HopRig(routes=ROUTES) as rig:
        for path in ("/v1/models", RELAY_PATH, "/nothing"):
            status, headers, body = await asked(rig, "OPTIONS", path)
            assert (status, body) == (204, b"")
            assert headers["Access-Control-Allow-Methods"] == "GET, POST, OPTIONS"
            assert headers["Access-Control-Allow-Headers"] == ALLOWED
            assert headers["Access-Control-Expose-Headers"] == EXPOSED
            assert (MARKER in headers) is (path == RELAY_PATH)


async def test_routes_of_others() -> None:
    async with HopRig(routes=ROUTES) as rig:
        assert (await asked(rig, "GET", "/v1/models/some-model"))[::2] == (200, b"some-model")
        assert (await asked(rig, "GET", "/v1/models/"))[::2] == (200, b"/v1/models")
        with pytest.raises(aiohttp.ClientPayloadError):
            await asked(rig, "GET", "/breaks")
        twice = (*ROUTES, Route("GET", "/fails", fails))
        with pytest.raises(ValueError, match="twice"):
            make_network_app(Network(rig.forwarder, rig.clock, routes=twice))


async def test_bodies_are_neither_unpacked_nor_read_beyond_the_limit() -> None:
    packed = zlib.compress(bytes(1 << 20), 9)[:1000]
    async with HopRig(routes=ROUTES) as rig:
        headers = {"Content-Encoding": "deflate"}
        assert (await asked(rig, "POST", "/counts", data=packed, headers=headers))[::2] == (200, b"1000")
        status, _, body = await asked(rig, "POST", "/counts", data=bytes(1001))
        assert (status, b"request_too_large" in body) == (413, True)


async def test_who_waits_to_be_told_to_go_on_is_told() -> None:
    async with HopRig(routes=ROUTES) as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        for length, told in ((5, b"HTTP/1.1 100 Continue\r\n\r\n"), (5000, b"HTTP/1.1 413 ")):
            head = f"POST /counts HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {length}"
            writer.write(head.encode() + b"\r\n\r\n")
            async with asyncio.timeout(5):
                assert await reader.readexactly(len(told)) == told
                if length == 5:
                    writer.write(b"hello")
                    assert (await reader.readuntil(b"\r\n\r\n5")).startswith(b"HTTP/1.1 200 ")
        writer.close()


async def test_a_crash_behind_the_relay_is_marked_and_says_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with HopRig(Target()) as rig:
        for crash in (RuntimeError("a secret"), TimeoutError()):

            def fail(*_: object, crash: Exception = crash) -> None:
                raise crash

            monkeypatch.setattr(rig.forwarder, "open", fail)
            status, headers, body = await asked(
                rig, "POST", RELAY_PATH, headers=hop_headers(rig.targets[0].ref)
            )
            assert (status, headers[MARKER]) == (500, "1")
            assert b"internal_error" in body
            assert b"secret" not in body
    text = "\n".join(logging.Formatter().format(record) for record in caplog.records)
    assert "RuntimeError in fail" in text
    assert "secret" not in text
    assert "127.0.0.1" not in text


@pytest.mark.parametrize(
    ("data", "marked"),
    [
        (b"POST /v1/zs/relay HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", True),
        (b"POST /at/home/v1/zs/relay/?a HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", True),
        (b"POST /v1/zs/relay HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", True),
        (b"POST /v1/zs/relay HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", True),
        (b"POST /v1/zs/relay HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 20_000 + b"\r\n\r\n", True),
        (b"POST /v1/zs/relay HTTP/1.1\r\n" + b"X: y\r\n" * 2000 + b"\r\n", True),
        (b"POST /v1/zs/relay HTTP/9.9\r\nHost: a\r\n\r\n", True),
        (b"POST http://evil/v1/zs/relay HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", True),
        (b"POST /v1/zs/%72elay HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", True),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nPOST /v1/zs/relay HTTP/1.1\r\nbad\r\n\r\n", True),
        (b"POST /v1/zs/details HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", False),
        (b"GET /v1/zs/relayed HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", False),
        (b"nonsense\r\n\r\n", False),
        (b"\x16\x03\x01\x00\x00", False),
    ],
    ids=range(14),
)
async def test_malformed_http_is_answered_and_marked_by_its_path(
    data: bytes, marked: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with HopRig(prefix="/at/home") as rig:
        got = await raw(rig.port, data)
        assert got.startswith(b"HTTP/1.0 400 ")  # aiohttp's version for what it could not parse
        assert (b"X-Zs-Relay-Hop: 1\r\n" in got) is marked
        assert b"Access-Control-Expose-Headers: " in got
        assert b'"code":"bad_request"' in got
    assert not caplog.records


@pytest.mark.parametrize(
    ("second", "marked"),
    [(b"GARBAGE\r\n\r\n", True), (b"GET /healthz HTTP/1.1\r\nbad\r\n\r\n", False)],
    ids=["no path", "another path"],
)
async def test_what_is_malformed_behind_a_whole_request(second: bytes, marked: bool) -> None:
    """Without a path of its own it counts as the relay's: whoever asked before asks again."""
    async with HopRig(Target()) as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(request_bytes(rig.targets[0].ref, b"x"))
        async with asyncio.timeout(5):
            assert (await reader.readuntil(b"fine")).startswith(b"HTTP/1.1 200")
            writer.write(second)
            got = await reader.read()
        assert got.startswith(b"HTTP/1.0 400")
        assert (b"X-Zs-Relay-Hop: 1" in got) is marked
        writer.close()


async def test_what_is_malformed_while_another_is_answered() -> None:
    """Its own path counts, and both are answered."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def waits(asked: Asked) -> web.StreamResponse:
        begun.set()
        await go_on.wait()
        return web.Response(text="waited", headers=own_headers(asked.place))

    async with HopRig(routes=(Route("GET", "/waits", waits),)) as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(b"GET /waits HTTP/1.1\r\nHost: a\r\n\r\n")
        async with asyncio.timeout(5):
            await begun.wait()
            writer.write(b"POST /v1/zs/relay HTTP/1.1\r\nbad\r\n\r\n")
            await asyncio.sleep(0.05)
            go_on.set()
            first, _, second = (await reader.read()).partition(b"waited")
        assert first.startswith(b"HTTP/1.1 200 ")
        assert b"X-Zs-Relay-Hop: 1\r\n" not in first
        assert second.startswith(b"HTTP/1.0 400 ")
        assert b"X-Zs-Relay-Hop: 1\r\n" in second
        writer.close()


async def test_connect_is_no_method_here_and_marked_on_the_relays_path() -> None:
    async with HopRig() as rig:
        for path, marked in ((b"/v1/zs/relay", True), (b"a.example:443", False)):
            got = await raw(rig.port, b"CONNECT %b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % path)
            assert got.startswith(b"HTTP/1.1 40")
            assert (b"X-Zs-Relay-Hop: 1\r\n" in got) is marked


async def test_requests_that_come_before_they_are_asked_for() -> None:
    """Pipelining: each keeps its own headers, also where one comes cut in two behind another."""
    async with HopRig(Target()) as rig:
        one = request_bytes(rig.targets[0].ref, b"1")
        two = request_bytes(rig.targets[0].ref, b"22", Accept="a/b")
        for cut in (0, 10, 60, len(two) - 3):
            reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
            writer.write(one + one + two[:cut])
            await asyncio.sleep(0.02)
            writer.write(two[cut:])
            async with asyncio.timeout(5):
                for _ in range(3):
                    assert (await reader.readuntil(b"fine")).startswith(b"HTTP/1.1 200")
            assert [each.body for each in rig.targets[0].got] == [b"1", b"1", b"22"]
            assert [each.headers.get("accept") for each in rig.targets[0].got] == [None, None, "a/b"]
            rig.targets[0].got.clear()
            writer.close()


@pytest.mark.parametrize("body", [b"", b"x" * 200_000])
async def test_who_only_stops_sending_is_answered(body: bytes) -> None:
    async with HopRig(Target()) as rig:
        for pause_s in (0.0, 0.1):
            reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
            writer.write(request_bytes(rig.targets[0].ref, body))
            await asyncio.sleep(pause_s)
            writer.write_eof()
            async with asyncio.timeout(1.5):
                got = await reader.read()
            assert got.startswith(b"HTTP/1.1 200 ")
            assert got.endswith(b"fine")
            writer.close()


async def test_who_stops_sending_in_the_middle_or_is_gone_keeps_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "HALF_CLOSED_S", 0.2)

    async def silent(reader: asyncio.StreamReader, *_: object) -> None:
        await reader.read()

    async with HopRig(Target(silent)) as rig:
        for data in (request_bytes(rig.targets[0].ref, b"12")[:-1], request_bytes(rig.targets[0].ref, b"12")):
            reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
            writer.write(data)
            async with asyncio.timeout(1.5):
                while not rig.circuits.open:
                    await asyncio.sleep(0.005)
                writer.write_eof()
                assert await reader.read() == b""
                while rig.circuits.open or rig.server.connections:
                    await asyncio.sleep(0.005)
            writer.close()


async def test_health_is_plain_and_200_while_draining() -> None:
    async with HopRig() as rig:
        assert (await asked(rig, "GET", "/healthz"))[::2] == (200, b"ok\n")
        rig.draining = True
        status, headers, body = await asked(rig, "GET", "/healthz")
        assert (status, body, MARKER in headers) == (200, b"draining\n", False)


async def test_it_closes_with_requests_under_way() -> None:
    async def silent(reader: asyncio.StreamReader, *_: object) -> None:
        await reader.read()

    async with HopRig(Target(silent)) as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(request_bytes(rig.targets[0].ref))
        async with asyncio.timeout(5):
            while not rig.targets[0].got:
                await asyncio.sleep(0.005)
    async with asyncio.timeout(5):
        assert await reader.read() in (b"",)
    writer.close()
    assert rig.circuits.open == 0

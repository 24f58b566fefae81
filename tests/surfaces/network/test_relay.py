from __future__ import annotations

import asyncio
import gc
import gzip
import io
import ipaddress
import logging
from pathlib import Path
from types import ModuleType

import aiohttp
import pytest
import uvloop
from aiohttp import web
from aiohttp.http_parser import RawRequestMessage

from relaydesk.core.relay.hop import PATH_HEADER, RELAY_PATH, TARGET_HEADER
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.relay.relaying.circuits import Caps
from relaydesk.surfaces.network import body as body_module
from relaydesk.surfaces.network import server as server_module
from relaydesk.surfaces.network.state import Limits
from tests.support.hop_rig import Got, HopRig, Target, answer, hop_headers, raw, request_bytes
from tests.support.lab_tls import make_lab_tls

MARKER = b"X-Zs-Relay-Hop: 1\r\n"


def split(got: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = got.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    pairs = [line.split(": ", 1) for line in lines[1:]]
    return int(lines[0].split()[1]), {name.lower(): value for name, value in pairs}, body


async def hop(rig: HopRig, body: bytes = b"", **more: str) -> tuple[int, dict[str, str], bytes]:
    """One relayed request over a connection of its own."""
    return split(await raw(rig.port, request_bytes(rig.targets[0].ref, body, Connection="close", **more)))


def code(body: bytes) -> str:
    return body.partition(b'"code":"')[2].partition(b'"')[0].decode()


async def test_nothing_that_names_the_client_goes_on() -> None:
    async with HopRig(Target()) as rig:
        naming = {
            "Authorization": "Bearer k",
            "Cookie": "a=b",
            "X-Forwarded-For": "192.0.2.1",
            "Forwarded": "for=192.0.2.1",
            "Via": "1.1 a",
            "User-Agent": "me",
            "Referer": "https://a.example",
            "Origin": "https://a.example",
            "Sec-CH-UA": "me",
            "Accept-Language": "de",
            "X-Zs-Other": "x",
            "Accept": "text/event-stream",
            "Content-Type": "application/vnd.zs+json",
        }
        status, headers, body = await hop(rig, b"sealed", **naming)
        assert (status, headers["content-type"], body) == (200, "text/plain", b"fine")
        got = rig.targets[0].got[0]
        assert got.body == b"sealed"
        assert got.headers == {
            "host": f"127.0.0.1:{rig.targets[0].port}",
            "accept-encoding": "identity",
            "content-type": "application/vnd.zs+json",
            "accept": "text/event-stream",
            "content-length": "6",
        }


async def test_only_the_wires_headers_come_back_and_the_marker_is_ours() -> None:
    given = [
        ("Content-Type", "application/vnd.zs+json"),
        ("X-Zs-Response-Key", "key"),
        ("X-Zs-Something-New", "1"),
        ("X-Zs-Relay-Hop", "evil"),
        ("Retry-After", "7"),
        ("Set-Cookie", "a=b"),
        ("Access-Control-Expose-Headers", "none"),
        ("Access-Control-Allow-Origin", "https://evil.example"),
        ("Location", "https://evil.example"),
        ("Content-Encoding", "gzip"),
        ("Server", "evil"),
        ("Keep-Alive", "timeout=1"),
    ]
    bomb = gzip.compress(bytes(1 << 22))
    async with HopRig(Target(answer(bomb, 200, given))) as rig:
        status, headers, body = await hop(rig)
        assert (status, body) == (200, bomb)
        assert headers["x-zs-relay-hop"] == "1"
        assert headers["x-zs-response-key"] == "key"
        assert headers["x-zs-something-new"] == "1"
        assert headers["retry-after"] == "7"
        assert headers["access-control-allow-origin"] == "*"
        assert "evil" not in str(headers)
        assert not {"set-cookie", "location", "content-encoding", "keep-alive"} & set(headers)


@pytest.mark.parametrize("status", [201, 204, 302, 400, 404, 429, 500, 502, 503, 504])
async def test_the_targets_status_is_its_own_word(status: int) -> None:
    """A 504 too: it is copied, like every other; of ours there is none."""
    body = b"" if status == 204 else b"its own"
    async with HopRig(Target(answer(body, status, length=status != 204))) as rig:
        found, headers, got = await hop(rig)
        assert (found, got, headers["x-zs-relay-hop"]) == (status, body, "1")


async def test_inner_gets_and_queries_go_as_they_are() -> None:
    async with HopRig(Target()) as rig:
        path = "/v1/zs/attestation?nonce=..%2F&x="
        await hop(rig, **{PATH_HEADER: path, "X-Zs-Relay-Method": "GET"})
        assert rig.targets[0].got[0].head.startswith(f"GET {path} HTTP/1.1\r\n")
        status, _, body = await hop(rig, b"x", **{"X-Zs-Relay-Method": "GET"})
        assert (status, code(body)) == (502, "relay_build_request")
        status, _, body = await hop(rig, b"x", **{"Content-Encoding": "gzip"})
        assert (status, code(body)) == (502, "relay_build_request")
        assert len(rig.targets[0].got) == 1


async def test_chunks_go_on_the_moment_they_come() -> None:
    steps = [asyncio.Event() for _ in range(3)]

    async def stream(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _got: Got) -> None:
        writer.write(
            b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for number, step in enumerate(steps):
            await step.wait()
            writer.write(b"8\r\n: ping%d\n\r\n" % number)
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    async with HopRig(Target(stream)) as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(request_bytes(rig.targets[0].ref))
        async with asyncio.timeout(5):
            head = await reader.readuntil(b"\r\n\r\n")  # before there is anything of the body
            assert b"X-Accel-Buffering: no\r\n" in head
            for number, step in enumerate(steps):
                step.set()
                assert (await reader.readuntil(b"ping%d\n" % number)).endswith(b": ping%d\n" % number)
            assert b"data: [DONE]\n\n\r\n" in await reader.readuntil(b"0\r\n\r\n")
        writer.close()


async def test_a_large_request_goes_through_piece_by_piece() -> None:
    async with HopRig(Target()) as rig:
        sent = bytes(range(256)) * 4 * 1024 * 3
        async with aiohttp.ClientSession() as session:
            headers = hop_headers(rig.targets[0].ref)
            for chunked in (False, True):

                async def pieces() -> object:
                    for at in range(0, len(sent), 100_000):
                        yield sent[at : at + 100_000]

                data = pieces() if chunked else io.BytesIO(sent)
                async with session.post(rig.url + RELAY_PATH, headers=headers, data=data) as reply:
                    assert (reply.status, await reply.read()) == (200, b"fine")
        for got, framing in zip(rig.targets[0].got, ("content-length", "transfer-encoding"), strict=True):
            assert got.body == sent
            assert framing in got.headers


async def test_bodies_over_the_limit_are_refused_marked() -> None:
    async with HopRig(Target(), limits=Limits(max_body=100_000)) as rig:
        headers = hop_headers(rig.targets[0].ref)
        status, found, body = await hop(rig, bytes(100_001))
        assert (status, code(body), found["x-zs-relay-hop"]) == (413, "request_too_large", "1")
        chunked = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
        data = b"POST /v1/zs/relay HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" + chunked + b"\r\n"
        got = await raw(
            rig.port, data + b"%x\r\n%b\r\n" % (120_000, bytes(120_000)) + b"0\r\n\r\n", wait_s=0.5
        )
        assert got.startswith(b"HTTP/1.1 413 ")
        assert MARKER in got
        assert (await hop(rig, bytes(100_000)))[0] == 200
        assert [len(each.body) for each in rig.targets[0].got] == [100_000]


async def test_a_client_that_trickles_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_module, "GRACE_S", 0.1)
    monkeypatch.setattr(server_module, "_LINGER_S", 0.1)
    async with HopRig(Target()) as rig:
        for declared in (1000, 100_000):
            whole = request_bytes(rig.targets[0].ref, bytes(declared))
            got = await raw(rig.port, whole[: len(whole) - declared + 10])
            assert got.startswith(b"HTTP/1.1 408 ")
            assert MARKER in got
            assert code(got) == "request_timeout"
        assert (rig.targets[0].got, rig.circuits.open) == ([], 0)


async def test_a_body_that_does_not_begin_is_not_waited_for_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_module, "FIRST_S", 0.1)
    monkeypatch.setattr(server_module, "_LINGER_S", 0.1)
    async with HopRig(Target()) as rig:
        whole = request_bytes(rig.targets[0].ref, bytes(100))
        assert code(await raw(rig.port, whole[:-100])) == "request_timeout"
        # With one byte it has begun.
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(whole[:-99])
        await asyncio.sleep(0.3)
        writer.write(whole[-99:])
        async with asyncio.timeout(5):
            assert (await reader.readuntil(b"fine")).startswith(b"HTTP/1.1 200 ")
        writer.close()


async def test_one_address_cannot_have_all_circuits() -> None:
    """Who counts are clients, here as a trusted proxy names them, each /64 as one."""
    proxies = (ipaddress.ip_network("127.0.0.1/32"),)
    async with HopRig(Target(), caps=Caps(circuits=8), proxies=proxies) as rig:
        held = []
        for host in ("2001:db8::1", "2001:db8::2"):
            reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
            # The last byte of the body never comes.
            more = {"X-Forwarded-For": host}
            writer.write(request_bytes(rig.targets[0].ref, b"xy", **more)[:-1])
            held.append((reader, writer))
        async with asyncio.timeout(5):
            while rig.circuits.open < 2:
                await asyncio.sleep(0.005)
        status, headers, body = await hop(rig, **{"X-Forwarded-For": "2001:db8::3"})
        assert (status, code(body), headers["x-zs-relay-hop"]) == (503, "relay_busy", "1")
        assert (await hop(rig, **{"X-Forwarded-For": "2001:db8:0:1::3"}))[0] == 200
        for _, writer in held:
            writer.close()
        async with asyncio.timeout(5):
            while rig.circuits.open:
                await asyncio.sleep(0.005)
        assert (await hop(rig, **{"X-Forwarded-For": "2001:db8::3"}))[0] == 200
        assert rig.circuits._held._counts == {}


async def test_a_head_that_never_ends_costs_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "KEEP_S", 0.3)
    async with HopRig(Target()) as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(b"POST /v1/zs/relay HTTP/1.1\r\n")
        async with asyncio.timeout(5):
            for _ in range(100):
                writer.write(b"X: y\r\n")
                if reader.at_eof() or await wait_eof(reader, 0.05):
                    break
            else:
                pytest.fail("it is still there")
        writer.close()


async def wait_eof(reader: asyncio.StreamReader, wait_s: float) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), wait_s) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


async def test_throttling_is_a_marked_503() -> None:
    async with HopRig(Target(), caps=Caps(per_minute=2)) as rig:
        assert [(await hop(rig))[0] for _ in range(2)] == [200, 200]
        status, headers, body = await hop(rig)
        assert (status, code(body), headers["x-zs-relay-hop"]) == (503, "relay_busy", "1")
        assert int(headers["retry-after"]) > 0
        rig.caps = Caps(circuits=0)
        assert code((await hop(rig))[2]) == "relay_busy"
        rig.draining = True
        assert code((await hop(rig))[2]) == "relay_busy"


async def test_who_counts_behind_a_trusted_proxy() -> None:
    proxies = (ipaddress.ip_network("127.0.0.1/32"),)
    async with HopRig(Target(), caps=Caps(per_minute=1), proxies=proxies) as rig:
        for client in ("192.0.2.1", "192.0.2.2"):
            assert (await hop(rig, **{"X-Forwarded-For": client}))[0] == 200
        assert (await hop(rig, **{"X-Forwarded-For": "192.0.2.1"}))[0] == 503
    async with HopRig(Target(), caps=Caps(per_minute=1)) as rig:
        assert (await hop(rig, **{"X-Forwarded-For": "192.0.2.1"}))[0] == 200
        assert (await hop(rig, **{"X-Forwarded-For": "192.0.2.2"}))[0] == 503


async def test_duplicate_relay_headers_are_refused() -> None:
    async with HopRig(Target()) as rig:
        ref = rig.targets[0].ref
        for name, expected in ((TARGET_HEADER, "relay_bad_target"), (PATH_HEADER, "relay_bad_path")):
            twice = request_bytes(ref).replace(b"\r\n\r\n", f"\r\n{name}: 1\r\n\r\n".encode())
            got = await raw(rig.port, twice, wait_s=0.3)
            assert got.startswith(b"HTTP/1.1 400 ")
            assert (code(got), MARKER in got) == (expected, True)


async def test_unreachable_targets_and_unknown_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    async with HopRig(Target(), allow_private=False) as rig:
        status, headers, body = await hop(rig)
        assert (status, code(body)) == (502, "relay_upstream_unreachable")
        assert headers["x-zs-relay-hop"] == "1"
        assert rig.targets[0].connections == 0
        status, headers, body = split(await raw(rig.port, request_bytes(NodeRef(1, 1), Connection="close")))
        assert (status, code(body), headers["x-zs-relay-hop"]) == (404, "relay_unknown_target", "1")


async def test_an_answer_that_breaks_off_never_looks_whole() -> None:
    async def half(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _got: Got) -> None:
        writer.write(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()
        raise ConnectionError

    async with HopRig(Target(half)) as rig:
        got = await raw(rig.port, request_bytes(rig.targets[0].ref))
        assert got.endswith(b"3\r\nabc\r\n")
        async with aiohttp.ClientSession() as session:
            reply = await session.post(rig.url + RELAY_PATH, headers=hop_headers(rig.targets[0].ref))
            with pytest.raises(aiohttp.ClientPayloadError):
                await reply.read()
        assert rig.circuits.open == 0


async def test_who_leaves_ends_the_target_at_once() -> None:
    ended = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _got: Got) -> None:
        writer.write(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        assert await reader.read() == b""
        ended.set()

    async with HopRig(Target(endless)) as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(request_bytes(rig.targets[0].ref))
        await reader.readuntil(b"abc")
        writer.transport.abort()
        async with asyncio.timeout(5):
            await ended.wait()
            while rig.circuits.open:
                await asyncio.sleep(0.005)


def test_who_leaves_in_the_middle_of_a_chunk_leaves_no_trace(caplog: pytest.LogCaptureFixture) -> None:
    """As the node runs, on uvloop: a write to whom has gone would fail in the connection to the target."""

    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _got: Got) -> None:
        writer.write(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"1\r\n.\r\n")
            await writer.drain()
            await asyncio.sleep(0)

    async def main() -> None:
        async with HopRig(Target(drip)) as rig:

            async def leave() -> None:
                reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
                writer.write(request_bytes(rig.targets[0].ref))
                for _ in range(5):
                    await reader.read(512)
                writer.transport.abort()

            for _ in range(10):
                await asyncio.gather(*(leave() for _ in range(8)))
            async with asyncio.timeout(20):
                while rig.circuits.open:
                    await asyncio.sleep(0.01)

    uvloop.run(main())
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize("tls", [False, True])
async def test_a_client_that_does_not_read_holds_no_memory(tls: bool, tmp_path: Path) -> None:
    """Of 64 MiB the target gets rid of what buffers hold; a client that never reads is ended."""
    sent = 0

    async def flood(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _got: Got) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(4096):
            writer.write(b"4000\r\n%b\r\n" % bytes(0x4000))
            await writer.drain()
            sent += 0x4000

    lab = make_lab_tls(tmp_path)
    own, trust = (lab.server(), lab.client()) if tls else (None, None)
    target = Target(flood, tls=own)
    async with HopRig(target, tls=own, trust=trust, limits=Limits(stall_s=1.0)) as rig:
        _, writer = await asyncio.open_connection("127.0.0.1", rig.port, ssl=trust, limit=1024)
        writer.write(request_bytes(target.ref))
        async with asyncio.timeout(20):
            while not sent:
                await asyncio.sleep(0.01)
            before = -1
            while sent != before:
                before = sent
                await asyncio.sleep(0.1)
            assert sent < 24 << 20
            while rig.circuits.open:
                await asyncio.sleep(0.01)
        writer.transport.abort()
        assert sent < 24 << 20


async def test_nothing_joins_a_client_with_a_target_once_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    """While the client's connection rests, nothing in memory has the target, the path or the body."""
    caplog.set_level(logging.DEBUG)
    sentence, path = "the-sentence-that-nobody-keeps", "/v1/models/a-model-nobody-remembers"
    async with HopRig(Target(answer(f"re: {sentence}".encode()))) as rig:
        ref = NodeRef(rig.targets[0].ref.operator, rig.targets[0].ref.node)
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(request_bytes(ref, sentence.encode(), **{PATH_HEADER: path, "Cookie": sentence}))
        async with asyncio.timeout(5):
            await reader.readuntil(b"\r\n\r\nre: " + sentence.encode())
            while rig.circuits.open or any(each._current_request for each in rig.server.connections):
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        rig.targets[0].got.clear()
        reader._buffer.clear()  # the test's own
        assert len(rig.server.connections) == 1
        kept = _reachable(rig.server, rig.forwarder)
        assert RELAY_PATH in kept  # the search finds what is there
        for secret in (sentence, path, f"re: {sentence}"):
            assert secret not in kept
            assert secret.encode() not in kept
        assert str(ref.operator) not in kept
        assert not any(isinstance(each, bytes) and sentence.encode() in each for each in kept)
        writer.close()
    assert not any(word in caplog.text for word in (sentence, path, str(ref.operator)))


def _reachable(*roots: object) -> set[str | bytes]:
    """Every text that an object graph holds, tasks' frames among it."""
    gc.collect()
    seen: dict[int, object] = {}
    ahead = list(roots)
    found: set[str | bytes] = set()
    while ahead:
        each = ahead.pop()
        if id(each) in seen or isinstance(each, type | ModuleType | Target | asyncio.AbstractEventLoop):
            continue  # by the loop, everything that the test itself holds would be found
        seen[id(each)] = each
        if isinstance(each, str | bytes | bytearray):
            found.add(bytes(each) if isinstance(each, bytearray) else each)
            continue
        if isinstance(each, asyncio.Task):
            ahead += each.get_stack()
        if type(each).__name__ == "frame":
            ahead += list(each.f_locals.values())  # type: ignore[attr-defined]
            continue
        if type(each).__name__ in ("function", "builtin_function_or_method"):
            ahead += [cell.cell_contents for cell in getattr(each, "__closure__", None) or ()]
            continue
        ahead += gc.get_referents(each)
        if isinstance(each, web.BaseRequest):
            ahead.append(each._message)
        if isinstance(each, RawRequestMessage):  # no container to the collector
            ahead += [each.path, each.headers, each.raw_headers, str(each.url)]
    return found


async def test_a_body_that_comes_after_its_refusal_is_kept_nowhere() -> None:
    """A refusal goes out before the body is read, and the connection may rest on afterwards."""
    async with HopRig(Target()) as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        head = b"POST /v1/zs/relay HTTP/1.1\r\nHost: relay\r\nContent-Length: 3000\r\n\r\n"
        writer.write(head + b"a sentence " * 100)
        answered = await reader.readuntil(b"\r\n\r\n")
        assert b" 400 " in answered.split(b"\r\n")[0] and b"X-Zs-Relay-Hop: 1" in answered
        writer.write(b"a sentence " * 172 + b"12345678")
        await asyncio.sleep(0.1)
        (connection,) = rig.server.connections
        assert b"sentence" not in connection._begun
        writer.close()

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import zlib
from collections.abc import Iterator

import pytest

from relaydesk.surfaces.public import body as body_module
from tests.support.raw_http import RawClient, Reply
from tests.support.scripted_engine import Script
from tests.support.scripted_hub import KEY, MIB, ScriptedHub

CHAT = "/v1/chat/completions"
GOOD = json.dumps({"messages": [{"role": "user", "content": "Hi"}]}).encode()


def padded(size: int) -> bytes:
    """A good request of so many bytes; most of them are in a field that nobody reads."""
    head, tail = b'{"messages":[{"role":"user","content":"Hi"}],"more":"', b'"}'
    return head + b"x" * (size - len(head) - len(tail)) + tail


async def post(hub: ScriptedHub, body: bytes, key: str | None = KEY, **headers: str) -> Reply:
    async with RawClient(hub.port, key) as client:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        client.head("POST", CHAT, {"Content-Length": str(len(body)), **named})
        client.send(body)
        return await client.reply()


def too_large(reply: Reply) -> bool:
    return (
        reply.status == 413
        and reply.code == "request_too_large"
        and "8 MiB" in reply.json["error"]["message"]
    )


async def test_nearly_eight_mib_pass(hub: ScriptedHub) -> None:
    for size in (int(7.9 * MIB), 8 * MIB):
        assert (await post(hub, padded(size))).status == 200
    assert (await post(hub, padded(8 * MIB + 1))).status == 413


async def test_more_is_refused_by_its_announced_length_before_it_is_sent(hub: ScriptedHub) -> None:
    async with RawClient(hub.port, KEY) as client:
        client.head("POST", CHAT, {"Content-Length": str(8 * MIB + 1)})
        reply = await client.reply(within=1)
    assert too_large(reply)
    assert reply.headers["connection"] == "close"
    assert reply.headers["x-should-retry"] == "false"


async def test_more_is_refused_where_no_length_was_announced(hub: ScriptedHub) -> None:
    async with RawClient(hub.port, KEY) as client:
        client.head("POST", CHAT, {"Transfer-Encoding": "chunked"})
        for _ in range(9):
            client.chunk(b"x" * MIB)
        assert too_large(await client.reply())
    assert hub.journal.requests_total == 0


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_small_bomb_is_refused_by_what_it_becomes(hub: ScriptedHub, encoding: str) -> None:
    big = padded(9 * MIB)
    bomb = gzip.compress(big) if encoding == "gzip" else zlib.compress(big)
    assert len(bomb) < 20_000
    assert too_large(await post(hub, bomb, Content_Encoding=encoding))


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate", "identity"])
async def test_a_compressed_body_is_read(hub: ScriptedHub, encoding: str) -> None:
    packed = {"gzip": gzip.compress, "deflate": zlib.compress, "identity": lambda data: data}
    body = packed[encoding.lower()](GOOD)
    assert (await post(hub, body, Content_Encoding=encoding)).status == 200


async def test_gzip_may_have_members_and_deflate_may_be_bare(hub: ScriptedHub) -> None:
    body = gzip.compress(GOOD[:20]) + gzip.compress(GOOD[20:])
    assert (await post(hub, body, Content_Encoding="gzip")).status == 200
    bare = zlib.compressobj(wbits=-15)
    body = bare.compress(GOOD) + bare.flush()
    assert (await post(hub, body, Content_Encoding="deflate")).status == 200


@pytest.mark.parametrize(
    ("body", "encoding", "status", "code"),
    [
        (b"this is not gzip", "gzip", 400, "invalid_request"),
        (gzip.compress(GOOD)[:-12], "gzip", 400, "invalid_request"),
        (gzip.compress(GOOD) + b"trailing", "gzip", 400, "invalid_request"),
        (gzip.compress(b"") * 400_000, "gzip", 400, "invalid_request"),
        (zlib.compress(GOOD)[:-5], "deflate", 400, "invalid_request"),
        (gzip.compress(b"{")[:10] + b"\xff" * 20, "gzip", 400, "invalid_request"),
        (GOOD, "br", 415, "unsupported_media_type"),
        (GOOD, "zstd", 415, "unsupported_media_type"),
        (GOOD, "gzip, gzip", 415, "unsupported_media_type"),
        (GOOD, "x" * 300, 415, "unsupported_media_type"),
    ],
    ids=["text", "cut", "trailing", "members", "cut-deflate", "damaged", "br", "zstd", "twice", "long"],
)
async def test_a_compression_that_cannot_be_undone(
    hub: ScriptedHub, body: bytes, encoding: str, status: int, code: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level(logging.INFO)
    reply = await post(hub, body, Content_Encoding=encoding)
    assert (reply.status, reply.code) == (status, code)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert (await post(hub, GOOD)).status == 200


async def test_without_a_key_no_body_is_waited_for(hub: ScriptedHub) -> None:
    async with RawClient(hub.port, None) as client:
        client.head("POST", CHAT, {"Content-Length": "1000000"})
        reply = await client.reply(within=1)
    assert (reply.status, reply.code) == (401, "invalid_api_key")
    assert reply.headers["connection"] == "close"


@pytest.mark.parametrize(
    ("key", "length", "status"),
    [(KEY, 8 * MIB + 1, 413), (None, 100, 401), ("wrong-key-wrong-key", 100, 401)],
)
async def test_nobody_is_told_to_go_on_in_vain(
    hub: ScriptedHub, key: str | None, length: int, status: int
) -> None:
    async with RawClient(hub.port, key) as client:
        client.head("POST", CHAT, {"Content-Length": str(length), "Expect": "100-continue"})
        assert (await client.reply(within=1)).status == status


async def test_whoever_may_go_on_is_told_so(hub: ScriptedHub) -> None:
    async with RawClient(hub.port, KEY) as client:
        client.head("POST", CHAT, {"Content-Length": str(len(GOOD)), "Expect": "100-Continue"})
        assert (await client.reply(within=1)).status == 100
        client.send(GOOD)
        assert (await client.reply()).status == 200


async def test_a_body_that_trickles_in_is_given_up(hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_module, "GRACE_S", 0.3)
    for headers in ({"Content-Length": "1000"}, {"Transfer-Encoding": "chunked"}):
        async with RawClient(hub.port, KEY) as client:
            client.head("POST", CHAT, headers)
            trickle = asyncio.create_task(drip(client, chunked="Transfer-Encoding" in headers))
            reply = await client.reply()
            trickle.cancel()
        assert (reply.status, reply.code) == (408, "request_timeout")
        assert reply.headers["connection"] == "close"
    assert hub.journal.requests_total == 0


async def test_a_body_that_never_comes_is_given_up(hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_module, "GRACE_S", 0.2)
    async with RawClient(hub.port, KEY) as client:
        client.head("POST", CHAT, {"Content-Length": "1000"})
        reply = await client.reply()
    assert (reply.status, reply.code) == (408, "request_timeout")
    assert "0 bytes" in reply.json["error"]["message"]


async def drip(client: RawClient, chunked: bool) -> None:
    while True:
        client.chunk(b"x") if chunked else client.send(b"x")
        await asyncio.sleep(0.02)


async def test_a_slow_line_that_keeps_up_gets_its_body_through(
    hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the grace, at twice the least rate."""
    monkeypatch.setattr(body_module, "GRACE_S", 0.3)
    monkeypatch.setattr(body_module, "BYTES_A_SECOND", 10_000)
    body = padded(12_000)
    async with RawClient(hub.port, KEY) as client:
        client.head("POST", CHAT, {"Content-Length": str(len(body))})
        for start in range(0, len(body), 1000):
            client.send(body[start : start + 1000])
            await asyncio.sleep(0.05)
        assert (await client.reply()).status == 200


async def test_who_ends_its_sending_side_counts_as_gone(hub: ScriptedHub) -> None:
    """Else nobody who closes a connection could be told from one who still listens, and slots stay taken."""
    await hub.warm()
    hub.starter.reply = lambda _: Script([asyncio.Event()])
    async with RawClient(hub.port, KEY) as client:
        client.head("POST", CHAT, {"Content-Length": str(len(GOOD))})
        client.send(GOOD)
        await hub.until(lambda: hub.starter.open == 1)
        client.writer.write_eof()
        await hub.idle()


async def test_an_upgrade_that_is_not_made_leaves_the_request_as_it_is(hub: ScriptedHub) -> None:
    """Clients on the JVM offer HTTP/2 with a body (B10)."""
    offer = {
        "Connection": "Upgrade, HTTP2-Settings",
        "Upgrade": "h2c",
        "HTTP2-Settings": "AAMAAABkAARAAAAAAAIAAAAA",
    }
    async with RawClient(hub.port, KEY) as client:
        for _ in range(2):
            client.head("POST", CHAT, {"Content-Length": str(len(GOOD)), **offer})
            client.send(GOOD)
            reply = await client.reply()
            assert (reply.status, reply.json["object"]) == (200, "chat.completion")
            assert "upgrade" not in reply.headers


DEEP = b"[" * 100_000 + b"]" * 100_000


def bad_bodies() -> Iterator[tuple[bytes, str, str | None]]:
    for body in (b"", b"  \n", b"{", b"nonsense", b'{"a":}', b"\xff\xfe{}", b'{"messages":"\xff"}', b"{}{}"):
        yield body, "invalid_json", None
    yield DEEP, "invalid", None
    yield b'{"tools":' + DEEP + b"}", "invalid_json", None
    yield b'{"x":' + b"1" * 5000 + b"}", "invalid_request", None  # a huge number, in a field nobody knows
    for body in (b"[]", b"null", b"3", b'"text"'):
        yield body, "invalid_request", None
    for field, value in (
        ("messages", "[]"), ("messages", "{}"), ("messages", "[1]"), ("messages", '[{"role":3}]'),
        ("messages", '[{"role":"god","content":"x"}]'), ("stream", '"yes"'), ("n", "0"), ("n", "1e3"),
        ("max_tokens", '"4"'), ("max_tokens", "-1"), ("temperature", "3"), ("temperature", "[]"),
        ("seed", "1e400"), ("stop", "{}"), ("model", "7"), ("model", '"' + "m" * 300 + '"'),
        ("logit_bias", "[]"), ("stream_options", "1"), ("user", "5"), ("tools", "{}"),
    ):  # fmt: skip
        messages = b"" if field == "messages" else b'"messages":[{"role":"user","content":"x"}],'
        yield b'{%b"%b":%b}' % (messages, field.encode(), value.encode()), "invalid", field


@pytest.mark.parametrize(("body", "code", "param"), list(bad_bodies()), ids=lambda each: str(each)[:40])
async def test_every_bad_body_gets_one_sentence(
    hub: ScriptedHub, body: bytes, code: str, param: str | None
) -> None:
    started = asyncio.get_running_loop().time()
    reply = await post(hub, body)
    assert asyncio.get_running_loop().time() - started < 1
    assert reply.status == 400, reply.body
    assert reply.code.startswith(code)
    if param is not None:
        assert (reply.json["error"]["param"] or "").startswith(param)
    assert reply.headers["x-should-retry"] == "false"
    assert hub.starter.starts == []

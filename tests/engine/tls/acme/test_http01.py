from __future__ import annotations

import asyncio
import socket

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.config.listen import Listen
from relaydesk.core.errors import EnvError
from relaydesk.engine.tls.acme import http01
from relaydesk.engine.tls.acme.http01 import Http01Port, answer
from tests.support.pebble import free_ports

FOUND = {"/.well-known/acme-challenge/tok": b"tok.print"}


async def ask(port: int, request: bytes, host: str = "127.0.0.1") -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(request)
    try:
        return await reader.read()
    finally:
        writer.close()


def test_only_what_is_published_is_found() -> None:
    for head in (
        b"GET /.well-known/acme-challenge/tok HTTP/1.1\r\nHost: hub.test\r\n\r\n",
        b"GET /.well-known/acme-challenge/tok HTTP/1.0\n\n",
    ):
        found = answer(head, FOUND)
        assert found.startswith(b"HTTP/1.1 200 OK\r\n")
        assert found.endswith(b"\r\n\r\ntok.print")
    for path in (b"/", b"/.well-known/acme-challenge/", b"/.well-known/acme-challenge/TOK", b"", b"*"):
        assert answer(b"GET " + path + b" HTTP/1.1\r\n\r\n", FOUND).startswith(b"HTTP/1.1 404")
    assert answer(b"POST /.well-known/acme-challenge/tok HTTP/1.1\r\n\r\n", FOUND).startswith(b"HTTP/1.1 404")


@given(st.binary(max_size=300))
def test_no_request_breaks_it(head: bytes) -> None:
    assert answer(head, FOUND).startswith(b"HTTP/1.1 404")


async def test_the_port_is_open_only_within() -> None:
    port = free_ports(1)[0]
    async with Http01Port(Listen("127.0.0.1", port)) as door:
        await door.publish("/x", "value")
        assert (await ask(port, b"GET /x HTTP/1.1\r\n\r\n")).endswith(b"\r\n\r\nvalue")
    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await ask(port, b"GET /x HTTP/1.1\r\n\r\n")


def test_every_interface_means_both_families() -> None:
    async def run() -> None:
        port = free_ports(1)[0]
        async with Http01Port(Listen("", port)):
            for host in ("127.0.0.1", "::1") if socket.has_dualstack_ipv6() else ("127.0.0.1",):
                assert (await ask(port, b"GET / HTTP/1.1\r\n\r\n", host)).startswith(b"HTTP/1.1 404")

    # The node's own loop words errors and makes transports in its own way.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


@pytest.mark.parametrize("host", ["127.0.0.1", ""])
async def test_a_port_in_use_says_what_to_do(host: str) -> None:
    with socket.create_server((host, 0)) as taken:
        listen = Listen(host, taken.getsockname()[1])
        with pytest.raises(
            EnvError, match=r"port \d+ is in use by another program: .*acme-challenge"
        ) as caught:
            async with Http01Port(listen):
                pass
    assert caught.value.fault.param == "RELAY_ACME_HTTP_LISTEN"


async def test_an_address_of_another_machine() -> None:
    with pytest.raises(EnvError, match="cannot be opened"):
        async with Http01Port(Listen("192.0.2.1", 8080)):
            pass


async def test_silence_and_floods_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http01, "REQUEST_S", 0.05)
    port = free_ports(1)[0]
    async with Http01Port(Listen("127.0.0.1", port)):
        for request in (b"", b"GET /x HTTP/1.1\r\n", b"A" * 100_000):
            try:
                assert await ask(port, request) == b""
            except ConnectionError:
                pass  # reset: cut off as well


async def test_who_waits_longest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http01, "MAX_OPEN", 2)
    monkeypatch.setattr(http01, "REQUEST_S", 600)
    port = free_ports(1)[0]
    async with Http01Port(Listen("127.0.0.1", port)) as door:
        await door.publish("/x", "value")
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        assert (await ask(port, b"GET /x HTTP/1.1\r\n\r\n")).endswith(b"value")
        try:
            async with asyncio.timeout(10):
                assert await silent[0][0].read() == b""
        except ConnectionError:
            pass  # reset: gone as well
        for _, writer in silent:
            writer.close()

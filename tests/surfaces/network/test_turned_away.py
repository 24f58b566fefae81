"""Connections too many: answered, marked, closed, and not without bound."""

from __future__ import annotations

import asyncio
import ipaddress
from pathlib import Path

import pytest
import uvloop

from relaydesk.surfaces.network import turned_away
from relaydesk.surfaces.network.state import Limits
from tests.support.hop_rig import HopRig, Target, raw, request_bytes
from tests.support.lab_tls import make_lab_tls

MARKER = b"X-Zs-Relay-Hop: 1\r\n"
DETAILS = b"GET /v1/zs/details HTTP/1.1\r\nHost: a\r\n\r\n"


async def opened(rig: HopRig, count: int) -> list[asyncio.StreamWriter]:
    """Connections that are let in."""
    before = len(rig.server.connections)
    found = [(await asyncio.open_connection("127.0.0.1", rig.port))[1] for _ in range(count)]
    async with asyncio.timeout(5):
        while len(rig.server.connections) < before + count:
            await asyncio.sleep(0.005)
    return found


async def test_one_address_has_a_quarter_and_is_told_where_it_is_too_much() -> None:
    async with HopRig(Target(), limits=Limits(connections=8)) as rig:
        one, two = await opened(rig, 2)
        for body in (b"", b"x" * 100_000):
            got = await raw(rig.port, request_bytes(rig.targets[0].ref, body))
            assert got.startswith(b"HTTP/1.1 503 ")
            assert MARKER in got
            assert b'"code":"relay_busy"' in got
            assert b"Retry-After: 2\r\n" in got
            assert b"Connection: close\r\n" in got
        got = await raw(rig.port, DETAILS)
        assert got.startswith(b"HTTP/1.1 503 ")
        assert MARKER not in got
        assert b'"code":"provider_unavailable"' in got
        assert len(rig.server.connections) == 2
        one.close()
        async with asyncio.timeout(5):
            while len(rig.server.connections) > 1:
                await asyncio.sleep(0.005)
        got = await raw(rig.port, request_bytes(rig.targets[0].ref, Connection="close"))
        assert got.startswith(b"HTTP/1.1 200 ")
        two.close()
        async with asyncio.timeout(5):
            while rig.server.connections:
                await asyncio.sleep(0.005)
        assert rig.server.held._counts == {}


async def test_a_trusted_proxys_connections_are_many_clients() -> None:
    proxies = (ipaddress.ip_network("127.0.0.1/32"),)
    async with HopRig(Target(), limits=Limits(connections=4), proxies=proxies) as rig:
        held = await opened(rig, 4)
        assert MARKER in await raw(rig.port, request_bytes(rig.targets[0].ref))
        for each in held:
            each.close()


async def test_who_is_turned_away_cannot_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turned_away, "WAIT_S", 0.3)
    monkeypatch.setattr(turned_away, "LINGER_S", 0.3)
    async with HopRig(Target(), limits=Limits(connections=1, turned_away=2)) as rig:
        held = await opened(rig, 1)
        silent = await asyncio.open_connection("127.0.0.1", rig.port)
        endless = await asyncio.open_connection("127.0.0.1", rig.port)
        endless[1].write(request_bytes(rig.targets[0].ref, b"xy")[:-1])
        async with asyncio.timeout(5):
            assert (await endless[0].readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 503 ")
            # Two are spoken to; the third is not.
            assert await raw(rig.port, DETAILS) == b""
            for reader, writer in (silent, endless):
                try:
                    await reader.read()
                except ConnectionError:
                    pass
                writer.close()
        assert (await raw(rig.port, DETAILS)).startswith(b"HTTP/1.1 503 ")
        held[0].close()


async def test_what_waits_to_be_turned_away_is_closed_with_the_listener() -> None:
    async with HopRig(Target(), limits=Limits(connections=1)) as rig:
        held = await opened(rig, 1)
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        async with asyncio.timeout(5):
            while not rig.server._turned_away:
                await asyncio.sleep(0.005)
    async with asyncio.timeout(2):
        try:
            assert await reader.read() == b""
        except ConnectionError:
            pass
    writer.close()
    held[0].close()


@pytest.mark.parametrize("tls", [False, True])
def test_it_is_the_same_by_uvloop_and_by_tls(tls: bool, tmp_path: Path) -> None:
    lab = make_lab_tls(tmp_path)

    async def run() -> None:
        async with HopRig(Target(), limits=Limits(connections=4), tls=lab.server() if tls else None) as rig:
            trust = lab.client() if tls else None
            _, held = await asyncio.open_connection("127.0.0.1", rig.port, ssl=trust)
            reader, writer = await asyncio.open_connection("127.0.0.1", rig.port, ssl=trust)
            writer.write(request_bytes(rig.targets[0].ref, b"12"))
            async with asyncio.timeout(5):
                got = await reader.readuntil(b"}}")
            assert MARKER in got
            assert b'"code":"relay_busy"' in got
            writer.close()
            held.close()

    uvloop.run(run())

from __future__ import annotations

import asyncio
import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from relaydesk.surfaces.control.server import ControlServer
from tests.contract.rigs import LiveNode


@dataclass
class Unknown:
    """What no encoder knows."""

    seq: int
    odd: object = object()


async def _line(response: aiohttp.ClientResponse) -> bytes:
    async with asyncio.timeout(3):
        return await response.content.readline()


async def _watchers(live: LiveNode, count: int) -> None:
    async with asyncio.timeout(3):
        while len(live.hub._watchers) != count:
            await asyncio.sleep(0.01)


async def test_updates_are_lines_and_silence_is_an_empty_one(
    server: ControlServer, live: LiveNode, session: aiohttp.ClientSession
) -> None:
    async with session.get("/watch?topics=keys,meta") as response:
        assert response.content_type == "application/x-ndjson"
        first = json.loads(await _line(response))
        assert set(first) == {"seq", "keys", "meta"}
        assert await _line(response) == b"\n"
        live.change()
        line = b"\n"
        while line == b"\n":
            line = await _line(response)
        assert set(json.loads(line)) == {"seq", "keys"}


async def test_without_topics_everything_is_watched(
    server: ControlServer, session: aiohttp.ClientSession
) -> None:
    async with session.get("/watch") as response:
        data = b""
        while b"\n" not in data:
            data += await response.content.readany()
        assert {"meta", "log", "jobs"} <= set(json.loads(data.partition(b"\n")[0]))


@pytest.mark.parametrize("who", ["node", "server"])
async def test_the_last_line_says_why(
    server: ControlServer, live: LiveNode, session: aiohttp.ClientSession, who: str
) -> None:
    async with session.get("/watch?topics=keys") as response:
        await _line(response)
        await (live.stop() if who == "node" else server.close())
        lines = [line for line in (await response.content.read()).splitlines() if line]
    assert json.loads(lines[-1]) == {"closed": "stopped"}


async def test_a_watcher_that_leaves_frees_its_place(
    server: ControlServer, live: LiveNode, session: aiohttp.ClientSession
) -> None:
    response = await session.get("/watch?topics=keys")
    await _line(response)
    await _watchers(live, 1)
    response.close()
    await _watchers(live, 0)


async def test_a_watcher_that_takes_nothing_is_cut_off(
    server: ControlServer, live: LiveNode, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.setblocking(False)
        await loop.sock_connect(sock, os.fspath(path))
        # The first update, with its log, is larger than every buffer on the way.
        await loop.sock_sendall(sock, b"GET /watch HTTP/1.1\r\nHost: x\r\n\r\n")
        await _watchers(live, 1)
        await _watchers(live, 0)
    assert "took nothing for 0.5 s" in caplog.text


async def test_many_watchers_do_not_hold_up_the_close(
    server: ControlServer, live: LiveNode, session: aiohttp.ClientSession
) -> None:
    responses = [await session.get("/watch?topics=keys") for _ in range(20)]
    await _watchers(live, 20)
    async with asyncio.timeout(2):
        await server.close()
    for response in responses:
        assert b'{"closed":"stopped"}' in await response.content.read()


async def test_a_bug_in_the_middle_cuts_the_watch_and_is_logged(
    server: ControlServer,
    live: LiveNode,
    session: aiohttp.ClientSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with session.get("/watch?topics=keys") as response:
        await _line(response)
        monkeypatch.setattr(live.node._projector, "since", lambda seq, topics: Unknown(99))
        live.change()
        with pytest.raises((aiohttp.ClientError, asyncio.IncompleteReadError)):
            async with asyncio.timeout(3):
                await response.content.read()
    assert "a watch failed" in caplog.text

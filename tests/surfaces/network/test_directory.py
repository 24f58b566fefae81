from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from relaydesk.core.relay.directory.document import open_document
from relaydesk.engine.relay.directory import keeper as keeper_module
from relaydesk.engine.relay.directory.keeper import Keeper
from relaydesk.engine.relay.directory.shelf import Shelf
from relaydesk.surfaces.network import directory as module
from relaydesk.surfaces.network.directory import add_directory_routes, directory_routes
from tests.support.directory_world import ANN, BOB, NOW
from tests.support.keeper_rig import answering, keeping, record_of
from tests.support.lab_relay import LabNode


@dataclass
class Rig:
    keeper: Keeper
    shelf: Shelf
    node: LabNode
    url: str
    client: aiohttp.ClientSession

    async def post(self, data: Any, **headers: str) -> tuple[int, Any]:
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        async with self.client.post(f"{self.url}/records", data=body, headers=headers) as reply:
            return reply.status, json.loads(await reply.read())


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    node = answering(LabNode(1), ANN)
    await node.start()
    async with keeping(tmp_path / "d", ANN) as (keeper, shelf), aiohttp.ClientSession() as client:
        app = web.Application()
        add_directory_routes(app, keeper)
        runner = web.AppRunner(app, auto_decompress=False)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/zs/directory"
        yield Rig(keeper, shelf, node, url, client)
        await runner.cleanup()
    await node.stop()


async def test_the_document_and_its_tag(rig: Rig) -> None:
    async with rig.client.get(rig.url) as reply:
        data, tag = await reply.read(), reply.headers["ETag"]
        assert reply.status == 200
        assert reply.headers["Content-Type"] == "application/json"
        assert reply.headers["Access-Control-Allow-Origin"] == "*"
        assert "X-Zs-Relay-Hop" not in reply.headers
    assert data == rig.shelf.document_file.read_bytes()
    assert open_document(data, rig.keeper.address, NOW).version == NOW
    for given in (tag, f'"x", W/{tag}'):
        async with rig.client.get(rig.url, headers={"If-None-Match": given}) as reply:
            assert (reply.status, await reply.read(), reply.headers["ETag"]) == (304, b"", tag)
    await rig.keeper.sign()
    async with rig.client.get(rig.url, headers={"If-None-Match": tag}) as reply:
        assert reply.status == 200
        assert reply.headers["ETag"] != tag


async def test_a_record_is_taken(rig: Rig) -> None:
    status, value = await rig.post(record_of(rig.node, ANN))
    assert status == 200
    assert (value["operator_id"], value["node_id"], value["version"]) == (ANN.operator, 0, 1)
    async with rig.client.get(rig.url) as reply:
        found = open_document(await reply.read(), rig.keeper.address, NOW)
    assert [each.ref for each in found.records] == [(ANN.operator, 0)]
    assert found.version == value["directory_version"]


async def test_refusals_say_why(rig: Rig) -> None:
    cases: list[tuple[Any, int, str]] = [
        (b"", 400, "record_malformed"),
        (b"{}", 400, "record_malformed"),
        (b"x" * 8193, 413, "record_too_large"),
        (record_of(rig.node, BOB), 403, "record_not_admitted"),
        (record_of(rig.node, ANN, base_url="http://127.0.0.1:1"), 400, "record_not_seen"),
    ]
    for data, status, code in cases:
        got, body = await rig.post(data)
        assert (got, body["error"]["code"], body["error"]["type"]) == (status, code, code)
        assert body["error"]["message"]
    bomb = gzip.compress(b"0" * 5_000_000)
    got, body = await rig.post(bomb, **{"Content-Encoding": "gzip"})
    assert (got, body["error"]["code"]) == (400, "record_malformed")


async def test_a_flood_is_told_to_come_later(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper_module, "OWNER_BURST", 2)
    for version in (1, 2):
        assert (await rig.post(record_of(rig.node, ANN, version=version)))[0] == 200
    late = json.dumps(record_of(rig.node, ANN, version=3)).encode()
    async with rig.client.post(f"{rig.url}/records", data=late) as reply:
        assert (reply.status, reply.headers["Retry-After"]) == (429, "10")


async def test_a_trickle_is_given_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BODY_S", 0.1)
    host, port = rig.url.removeprefix("http://").split("/")[0].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /v1/zs/directory/records HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{")
    assert b"400" in await asyncio.wait_for(reader.readline(), 5)
    writer.close()


async def test_the_network_listener_gets_the_same_routes(rig: Rig) -> None:
    assert [(each.method, each.path) for each in directory_routes(rig.keeper)] == [
        ("GET", "/v1/zs/directory"),
        ("POST", "/v1/zs/directory/records"),
    ]

"""The listener of a network that is up, over a real socket: what a stranger can ask it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp

from relaydesk.config.model import Settings
from relaydesk.core.relay.catalogue import read_error
from relaydesk.core.relay.hop import RELAY_PATH, RESERVE_PATH
from relaydesk.core.relay.records.details import OfferedModel, decode_details
from relaydesk.engine.relay.directory.shelf import Shelf
from relaydesk.engine.relay.parts import KEEPER_FOLDER
from relaydesk.engine.relay.service import NetworkService
from relaydesk.surfaces.network.listener import network_listener
from tests.support.lab_ground import network_service, network_settings
from tests.support.target_rig import TargetRig

MODEL = OfferedModel(
    id="smollm2",
    input_rate_usd_per_1m=0.07,
    output_rate_usd_per_1m=0.2,
    context_window=4096,
    max_output_tokens=1024,
    tool_use=True,
)


@asynccontextmanager
async def listening(folder: Path, **changes: Any) -> AsyncIterator[tuple[NetworkService, str]]:
    settings = network_settings(**changes)
    async with network_service(folder, settings) as service, served(service, settings) as url:
        yield service, url


@asynccontextmanager
async def served(service: NetworkService, settings: Settings) -> AsyncIterator[str]:
    server = network_listener(service, settings, service.ground.clock)
    sock = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{sock.sockets[0].getsockname()[1]}"
    finally:
        sock.close()
        server.pre_shutdown()
        await server.shutdown(1)


async def asked(url: str, path: str, method: str = "GET", **options: Any) -> tuple[int, Any, bytes]:
    async with aiohttp.ClientSession() as session, session.request(method, url + path, **options) as reply:
        return reply.status, reply.headers, await reply.read()


async def test_details_are_plain_and_readable_for_every_origin(tmp_path: Path) -> None:
    async with listening(tmp_path) as (service, url):
        assert service.parts is not None
        for path in ("/v1/zs/details", "/v1/zs/details?model=x&expand=coordinates,digest"):
            status, headers, body = await asked(url, path)
            assert (status, headers["Content-Type"]) == (200, "application/json")
            assert headers["Access-Control-Allow-Origin"] == "*"
            assert "X-Zs-Relay-Hop" not in headers
            assert decode_details(body).operator_id == service.parts.identity.operator_id


async def test_models_have_prices_as_text_and_an_entry_is_the_same_alone(tmp_path: Path) -> None:
    async with listening(tmp_path) as (service, url):
        service.offers = lambda: (MODEL,)
        status, _, body = await asked(url, "/v1/models")
        assert status == 200
        assert b'"prompt": "0.00000007"' in body
        assert b'"completion": "0.0000002"' in body
        status, _, alone = await asked(url, "/v1/models/smollm2")
        assert status == 200
        assert alone in body
        assert (await asked(url, "/v1/models/smoll%6D2"))[2] == alone
        assert (await asked(url, "/v1/models/other"))[0] == 404


async def test_what_one_address_may_ask_of_a_target_is_a_setting(tmp_path: Path) -> None:
    settings = network_settings(target_per_minute=1)
    async with TargetRig(tmp_path) as rig, network_service(tmp_path / "network", settings) as service:
        assert service.parts is not None
        service.parts = replace(service.parts, target=rig.target)
        async with served(service, settings) as url:
            codes = [read_error((await asked(url, RESERVE_PATH, "POST"))[2]).code for _ in range(2)]
        service.parts = replace(service.parts, target=None)
    assert codes == ["bad_content_type", "no_capacity"]


async def test_no_attestation(tmp_path: Path) -> None:
    async with listening(tmp_path) as (_, url):
        status, headers, body = await asked(url, "/v1/zs/attestation?nonce=" + "0" * 64)
        assert (status, headers["Access-Control-Allow-Origin"]) == (404, "*")
        assert read_error(body).code == "attestation_disabled"


async def test_a_path_of_the_public_url_may_be_left_on(tmp_path: Path) -> None:
    async with listening(tmp_path, public_url="http://127.0.0.1:1/at/home") as (_, url):
        for path in ("/v1/zs/details", "/at/home/v1/zs/details"):
            assert (await asked(url, path))[0] == 200
        assert (await asked(url, "/elsewhere/v1/zs/details"))[0] == 404


async def test_without_a_directory_the_relay_answers_marked_and_knows_nobody(tmp_path: Path) -> None:
    headers = {
        "X-Zs-Relay-Target": "1",
        "X-Zs-Relay-Target-Node": "0",
        "X-Zs-Relay-Path": "/v1/zs/details",
        "X-Zs-Relay-Method": "GET",
    }
    async with listening(tmp_path) as (service, url):
        status, got, body = await asked(url, RELAY_PATH, "POST", headers=headers)
        assert (status, got["X-Zs-Relay-Hop"]) == (404, "1")
        assert b"relay_unknown_target" in body
        assert service.view().relaying.refused == 1


async def test_a_kept_directory_is_served(tmp_path: Path) -> None:
    async with listening(tmp_path) as (service, url):
        assert (await asked(url, "/v1/zs/directory"))[0] == 404
        rng = service.ground.rng
    key = Shelf(tmp_path / KEEPER_FOLDER).create("lab", rng)
    async with listening(tmp_path) as (service, url):
        status, _, body = await asked(url, "/v1/zs/directory")
        assert status == 200
        assert key.address.encode() in body

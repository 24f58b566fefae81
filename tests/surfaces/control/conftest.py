from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from relaydesk.surfaces.control.server import ControlServer
from tests.contract.rigs import LiveNode

Ask = Callable[..., Awaitable[tuple[int, Any]]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "control.sock"


@pytest_asyncio.fixture
async def live() -> AsyncIterator[LiveNode]:
    live = LiveNode()
    yield live
    await live.stop()


@pytest_asyncio.fixture
async def server(live: LiveNode, path: Path) -> AsyncIterator[ControlServer]:
    server = ControlServer(live.node, path, live.clock, keepalive_s=0.1, stall_s=0.5)
    await server.start()
    yield server
    await server.close()


@pytest_asyncio.fixture
async def session(path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.UnixConnector(path=str(path))
    async with aiohttp.ClientSession("http://localhost", connector=connector) as session:
        yield session


@pytest_asyncio.fixture
async def ask(server: ControlServer, session: aiohttp.ClientSession) -> Ask:
    """One request; the status and the body as JSON."""

    async def ask(method: str, route: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = body if body is None or isinstance(body, bytes | io.BytesIO) else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with session.request(method, route, data=data, headers=sent) as response:
            assert response.content_type == "application/json"
            return response.status, json.loads(await response.read())

    return ask

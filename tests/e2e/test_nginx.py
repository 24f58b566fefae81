"""nginx in front of a hub, as people run it: a path prefix, its buffering left on, streams all the same."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from relaydesk.core.access.exposure import Exposure
from tests.support.pebble import free_ports
from tests.support.scripted_engine import Script, answer, piece
from tests.support.scripted_hub import KEY, ScriptedHub

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="needs nginx")

# One location leaves the prefix on and speaks HTTP/1.0 to the hub, which is nginx's default and where its
# buffering delays streams; the other takes the prefix off and speaks HTTP/1.1. A hub serves both.
CONFIG = """
daemon off; master_process off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log warn;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  server {{
    listen 127.0.0.1:{port};
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme;
    location /at/home/ {{ proxy_pass http://127.0.0.1:{hub}; }}
    location /stripped/ {{
      proxy_pass http://127.0.0.1:{hub}/; proxy_http_version 1.1; proxy_set_header Connection "";
    }}
  }}
}}
"""


@dataclass
class Front:
    """A hub and the proxy before it."""

    hub: ScriptedHub
    url: str
    session: aiohttp.ClientSession


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Front]:
    exposure = Exposure(prefix="/at/home", proxies=(ipaddress.ip_network("127.0.0.1/32"),))
    async with ScriptedHub(tmp_path, exposure=exposure) as hub:
        await hub.add("tiny")
        await hub.warm()
        (port,) = free_ports(1)
        config = tmp_path / "nginx.conf"
        config.write_text(CONFIG.format(dir=tmp_path, port=port, hub=hub.port))
        assert NGINX is not None
        nginx = await asyncio.create_subprocess_exec(
            NGINX, "-p", str(tmp_path), "-c", str(config), stderr=asyncio.subprocess.DEVNULL
        )
        try:
            await listening(port, tmp_path / "error.log")
            async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session:
                yield Front(hub, f"http://127.0.0.1:{port}", session)
        finally:
            nginx.terminate()
            await nginx.wait()


async def listening(port: int, log: Path) -> None:
    for _ in range(500):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return
    raise AssertionError(f"nginx does not listen: {log.read_text() if log.exists() else ''}")


@pytest.mark.parametrize("prefix", ["/at/home", "/stripped"])
async def test_a_mounted_hub_is_whole(front: Front, prefix: str) -> None:
    for path, status in (("/v1/models", 200), ("/models/", 200), ("/v1/models/tiny", 200), ("/nothing", 404)):
        async with front.session.get(front.url + prefix + path) as reply:
            assert (reply.status, reply.content_type) == (status, "application/json"), path
            assert reply.headers["x-request-id"]
    async with aiohttp.ClientSession() as nobody, nobody.get(f"{front.url}{prefix}/v1/models") as reply:
        assert reply.status == 401
    async with front.session.get(f"{front.url}{prefix}/openapi.json") as reply:
        assert (await reply.json())["servers"] == [{"url": "/at/home"}]


@pytest.mark.parametrize("prefix", ["/at/home", "/stripped"])
@pytest.mark.parametrize(("path", "head"), [("/v1/chat/completions", b"data: "), ("/api/chat", b"{")])
async def test_a_token_comes_before_the_next_one_is_made(
    front: Front, path: str, head: bytes, prefix: str
) -> None:
    """With nginx's buffering on, because the hub tells it not to. It passes on what comes with the headers
    in any case; what follows is what it would keep."""
    second, third = asyncio.Event(), asyncio.Event()
    steps = [piece("first"), second, piece("second"), third, piece("third"), *answer("").steps]
    front.hub.starter.reply = lambda _: Script(steps)
    body = {"messages": [{"role": "user", "content": "Hi"}], "stream": True}
    try:
        async with asyncio.timeout(20), front.session.post(front.url + prefix + path, json=body) as reply:
            assert reply.status == 200
            assert "Content-Encoding" not in reply.headers
            text = b""
            for word, more in ((b"first", second), (b"second", third)):
                while word not in text:
                    text += await reply.content.readany()
                more.set()
            assert text.startswith(head)
            text += await reply.content.read()
    finally:
        second.set()
        third.set()
    assert b"third" in text
    await front.hub.idle()


async def test_who_leaves_behind_nginx_frees_the_slot(front: Front) -> None:
    front.hub.starter.reply = lambda _: Script([piece("first"), asyncio.Event()])
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "stream": True})
    async with front.session.post(f"{front.url}/at/home/v1/chat/completions", data=body) as reply:
        await reply.content.readany()
        assert front.hub.starter.open == 1
        reply.close()
    await front.hub.idle(5)

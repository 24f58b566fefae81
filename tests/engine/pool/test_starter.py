from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from relaydesk.core.errors import FaultError, LocalError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.pool.starter import EngineStarter
from tests.support import gguf_builder


class Server:
    """Another OpenAI-compatible server, as far as a start asks it."""

    def __init__(self) -> None:
        self.status = 200
        self.keys: list[str | None] = []
        self.url = ""

    async def models(self, request: web.Request) -> web.Response:
        self.keys.append(request.headers.get("Authorization"))
        if self.status == 0:
            await asyncio.sleep(60)
        return web.json_response({"data": []}, status=self.status)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    app = web.Application()
    app.router.add_get("/v1/models", server.models)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = site.name + "/v1"
    port = runner.addresses[0][1]
    server.url = f"http://127.0.0.1:{port}/v1"
    yield server
    await runner.cleanup()


@pytest.fixture
def starter(tmp_path: Path) -> EngineStarter:
    secrets = {"far_key": "sk-far"}
    return EngineStarter(tmp_path / "run", 1, SystemRng(), SystemClock(), secrets.get)


def ignore(_: float | None) -> None:
    pass


async def test_a_far_server_is_asked_with_its_own_key(server: Server, starter: EngineStarter) -> None:
    spec = ModelSpec(name="far", kind="url", url=server.url, url_model="org/big", url_key_secret="far_key")
    running = await starter.start(spec, 0, 5.0, ignore)
    assert server.keys == ["Bearer sk-far"]
    assert (running.alias, running.pid, running.extensions, running.exited) == ("org/big", 0, False, None)
    assert await running.memory_mb() == 0
    running.kill()  # there is nothing here to kill
    await running.stop()
    plain = await starter.start(ModelSpec(name="far", kind="url", url=server.url), 0, 5.0, ignore)
    assert server.keys[-1] is None
    assert plain.alias == "far"
    await plain.stop()


@pytest.mark.parametrize("status", [0, 401, 500])
async def test_a_far_server_that_does_not_answer(server: Server, starter: EngineStarter, status: int) -> None:
    server.status = status
    with pytest.raises(FaultError) as caught:
        await starter.start(ModelSpec(name="far", kind="url", url=server.url), 0, 0.3, ignore)
    assert caught.value.fault.code == "model_load_failed"
    assert "far" in caught.value.fault.message
    assert caught.value.fault.hint


async def test_nobody_listens(starter: EngineStarter) -> None:
    with pytest.raises(FaultError) as caught:
        await starter.start(ModelSpec(name="far", kind="url", url="http://127.0.0.1:9"), 0, 5.0, ignore)
    assert caught.value.fault.code == "model_load_failed"


async def test_an_address_with_a_secret_is_refused(starter: EngineStarter) -> None:
    with pytest.raises(LocalError):
        await starter.start(ModelSpec(name="far", kind="url", url="http://u:pw@h/v1"), 0, 5.0, ignore)


@pytest.mark.parametrize(
    ("content", "word"),
    [(None, "no such file"), (b"\xff\xfe", "decode"), (b"x" * (1 << 20) + b"x", "1 MiB")],
    ids=["missing", "binary", "huge"],
)
async def test_a_template_that_cannot_be_read(
    starter: EngineStarter, tmp_path: Path, content: bytes | None, word: str
) -> None:
    template = tmp_path / "chat.jinja"
    if content is not None:
        template.write_bytes(content)
    model = tmp_path / "tiny.gguf"
    model.write_bytes(gguf_builder.tiny())
    spec = ModelSpec(name="a", path=str(model), template=str(template))
    with pytest.raises(FaultError) as caught:
        await starter.start(spec, 512, 5.0, ignore)
    assert caught.value.fault.code == "model_load_failed"
    assert word.lower() in caught.value.fault.message.lower()
    assert not (tmp_path / "run").exists()  # no process was started for it


@pytest.mark.engine
async def test_a_worker_starts_answers_and_tells_when_it_ends(
    starter: EngineStarter, smollm2: Path, tmp_path: Path
) -> None:
    template = tmp_path / "chat.jinja"
    template.write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    spec = ModelSpec(name="tiny", path=str(smollm2), slots=2, template=str(template))
    told: list[float | None] = []
    running = await starter.start(spec, 256, 30.0, told.append)
    try:
        assert running.ready is not None
        assert (running.ready.slots, running.ready.ctx_slot) == (2, 256)
        assert running.url.startswith("unix:")
        assert await running.engine.health()
        assert await running.memory_mb() > 50
        assert running.exited is not None
        assert not running.exited.done()
        os.kill(running.pid, 9)
        assert "SIGKILL" in await asyncio.wait_for(running.exited, 5)
    finally:
        await running.stop()
    assert not await running.engine.health()

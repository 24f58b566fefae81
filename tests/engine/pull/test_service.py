from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from relaydesk.core.errors import LocalError
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.pull.pulled import Progress
from relaydesk.engine.pull.service import PullService
from tests.support.fake_hub import FakeHub, gguf_bytes

CONTENT = gguf_bytes(2_000_000)


def service(hub: FakeHub, folder: Path) -> PullService:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "HF_ENDPOINT": hub.url}
    return PullService(folder / "models", SystemClock(), environ=environ)


def left(folder: Path) -> set[str]:
    return {path.name for path in (folder / "models").rglob("*") if path.is_file()}


async def test_a_second_caller_joins_the_first(tmp_path: Path) -> None:
    first: list[Progress] = []
    second: list[Progress] = []
    async with FakeHub({"m.gguf": CONTENT}, list_delay=0.3) as hub:
        pulls = service(hub, tmp_path)
        one = asyncio.ensure_future(pulls.pull("hf:owner/repo", on_progress=first.append))
        while not hub.seen:
            await asyncio.sleep(0.01)
        two = asyncio.ensure_future(pulls.pull("hf.co/Owner/Repo", on_progress=second.append))
        assert await one == await two
    assert hub.sent == len(CONTENT)
    assert second[0].stage == "asking"
    assert first[-1].done == second[-1].done == len(CONTENT)


async def test_one_of_two_leaving_stops_nothing_the_last_one_does(tmp_path: Path) -> None:
    async with FakeHub({"m.gguf": CONTENT}, delay=0.02) as hub:
        pulls = service(hub, tmp_path)
        one = asyncio.ensure_future(pulls.pull("hf:owner/repo"))
        two = asyncio.ensure_future(pulls.pull("hf:owner/repo"))
        await hub.serving.wait()
        one.cancel()
        await asyncio.wait([one])
        sent = hub.sent
        await asyncio.sleep(0.1)
        assert hub.sent > sent
        two.cancel()
        await asyncio.wait([two])
        assert two.cancelled()
        assert left(tmp_path) == {"m.gguf.part", "m.gguf.part.json"}
        sent = hub.sent
        await asyncio.sleep(0.1)
        assert hub.sent <= sent + hub.chunk
        hub.delay = 0.0
        pulled = await pulls.pull("hf:owner/repo")
        assert pulled.path.read_bytes() == CONTENT
        assert hub.fetched[-1].range is not None


async def test_close_stops_what_runs(tmp_path: Path) -> None:
    async with FakeHub({"m.gguf": CONTENT}, delay=0.02) as hub:
        pulls = service(hub, tmp_path)
        one = asyncio.ensure_future(pulls.pull("hf:owner/repo"))
        while hub.sent < 300_000:
            await asyncio.sleep(0.01)
        await pulls.close()
        await asyncio.wait([one])
        assert one.cancelled()
        assert left(tmp_path) == {"m.gguf.part", "m.gguf.part.json"}


async def test_a_bad_reference_starts_nothing(tmp_path: Path) -> None:
    async with FakeHub({}) as hub:
        with pytest.raises(LocalError, match="is not a model reference"):
            await service(hub, tmp_path).pull("../x")
    assert hub.seen == []
    assert not (tmp_path / "models").exists()

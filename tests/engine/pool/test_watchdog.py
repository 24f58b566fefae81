"""An engine that is stopped in the middle of an answer: found, ended, replaced."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import aiohttp
import pytest

from tests.support.hub import Hub, chat_body

pytestmark = [pytest.mark.engine, pytest.mark.long]


@pytest.mark.timeout(150)
async def test_a_hung_engine_is_ended_and_replaced(smollm2: Path) -> None:
    with Hub() as hub:
        hub.add(smollm2)
        hub.load()
        engine = hub.engines()[0]
        body = chat_body("Tell a very long story.", max_tokens=600, stream=True, logit_bias={"2": -100})
        lines: list[bytes] = []
        async with aiohttp.ClientSession(headers=hub.headers()) as session:
            async with session.post(f"{hub.url}/v1/chat/completions", json=body) as reply:
                async for line in reply.content:
                    if line.startswith(b"data: "):
                        lines.append(line.strip())
                        if len(lines) == 5:
                            os.kill(engine.pid, signal.SIGSTOP)
            assert json.loads(lines[-1][6:])["error"]["code"] == "engine_failed"
            assert not engine.is_running() or engine.status() == "zombie"
            async with session.post(f"{hub.url}/v1/chat/completions", json=chat_body()) as reply:
                assert reply.status == 200
        assert [each.pid for each in hub.engines()] != [engine.pid]
        assert "has stopped answering" in hub.log.read_text()
        await asyncio.sleep(0)

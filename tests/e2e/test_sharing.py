"""Many at once: one load for all, slots for each, and room that is made for others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.hub import Hub, chat_body, view_models

pytestmark = pytest.mark.engine


async def post(session: aiohttp.ClientSession, hub: Hub, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    async with session.post(f"{hub.url}/v1/chat/completions", json=body) as reply:
        return reply.status, json.loads(await reply.text())


async def test_ten_first_requests_start_one_engine(smollm2: Path) -> None:
    with Hub() as hub:
        hub.add(smollm2)
        seen: set[int] = set()
        done = asyncio.Event()

        async def count() -> None:
            while not done.is_set():
                seen.update(process.pid for process in await asyncio.to_thread(hub.engines))
                await asyncio.sleep(0.02)

        async with aiohttp.ClientSession(headers=hub.headers()) as session:
            counting = asyncio.create_task(count())
            replies = await asyncio.gather(
                *(post(session, hub, chat_body(f"Say {number}.", max_tokens=3)) for number in range(10))
            )
            done.set()
            await counting
        assert [status for status, _ in replies] == [200] * 10
        assert all(body["choices"][0]["message"]["content"] for _, body in replies)
        assert len(seen) == 1


async def test_four_streams_all_progress(hub: Hub) -> None:
    """Every stream has had some tokens before any has had all."""
    progress = [0, 0, 0, 0]
    least_when_first_ended: list[int] = []

    async def read(session: aiohttp.ClientSession, number: int) -> None:
        body = chat_body(f"Count to {number + 50}.", max_tokens=40, stream=True, logit_bias={"2": -100})
        async with session.post(f"{hub.url}/v1/chat/completions", json=body) as reply:
            assert reply.status == 200
            async for line in reply.content:
                if b'"content":"' in line and b'"role"' not in line:
                    progress[number] += 1
        least_when_first_ended.append(min(progress))

    async with aiohttp.ClientSession(headers=hub.headers()) as session:
        await asyncio.gather(*(read(session, number) for number in range(4)))
    assert least_when_first_ended[0] >= 10, (progress, least_when_first_ended)


async def test_a_fifth_request_waits_for_a_slot(hub: Hub) -> None:
    async with aiohttp.ClientSession(headers=hub.headers()) as session:
        replies = await asyncio.gather(
            *(post(session, hub, chat_body(f"Say {number}.", max_tokens=12)) for number in range(6))
        )
    assert [status for status, _ in replies] == [200] * 6
    requests = hub.view().requests.value
    assert requests is not None
    newest = requests.recent[:6]
    assert sum(1 for request in newest if (request.queue_ms or 0) > 20) >= 2


@pytest.mark.long
async def test_the_longest_unused_makes_room_and_one_in_use_is_waited_for(smollm2: Path) -> None:
    """Room for two: loading a third unloads the one unused for longest; one in use finishes first (B31)."""
    with Hub(host_memory_mb="560") as hub:
        for name in ("a", "b", "c"):
            hub.add(smollm2, name, ctx=512, slots=1)
        async with aiohttp.ClientSession(headers=hub.headers()) as session:
            for name in ("a", "b", "a"):
                status, _ = await post(session, hub, chat_body(model=name, max_tokens=2))
                assert status == 200
            status, _ = await post(session, hub, chat_body(model="c", max_tokens=2))
            assert status == 200
            states = {model.name: model.state for model in view_models(hub.view())}
            assert states == {"a": "warm", "b": "cold", "c": "warm"}

            long = chat_body("Tell a long story.", model="a", max_tokens=150, logit_bias={"2": -100})
            other = chat_body("Tell a long story.", model="c", max_tokens=150, logit_bias={"2": -100})
            running = [asyncio.create_task(post(session, hub, body)) for body in (long, other)]
            await asyncio.sleep(0.5)
            late = asyncio.create_task(post(session, hub, chat_body(model="b", max_tokens=2)))
            results = await asyncio.gather(*running, late)
        assert [status for status, _ in results] == [200, 200, 200]
        assert results[0][1]["usage"]["completion_tokens"] == 150
        assert results[1][1]["usage"]["completion_tokens"] == 150


@pytest.mark.long
async def test_idle_models_are_unloaded(smollm2: Path) -> None:
    with Hub() as hub:
        hub.add(smollm2, keep_alive_s=1)
        async with aiohttp.ClientSession(headers=hub.headers()) as session:
            assert (await post(session, hub, chat_body()))[0] == 200
        assert len(hub.engines()) == 1
        await asyncio.to_thread(
            hub.wait_for, lambda view: all(m.state == "cold" for m in view_models(view)), 10
        )
        await asyncio.to_thread(hub.wait_for, lambda _view: hub.engines() == [], 5)

"""Things that die in the middle, and clients that leave."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest

from tests.support.hub import Hub, chat_body

pytestmark = pytest.mark.engine

LONG: dict[str, Any] = chat_body("Tell a very long story.", max_tokens=600, logit_bias={"2": -100})


async def stream_until(
    session: aiohttp.ClientSession, hub: Hub, body: dict[str, Any], after: int, act: Any
) -> list[bytes]:
    """Read a stream, calling ``act`` behind the given number of events; all its data lines."""
    lines = []
    async with session.post(f"{hub.url}/v1/chat/completions", json={**body, "stream": True}) as reply:
        assert reply.status == 200
        async for line in reply.content:
            if line.startswith(b"data: "):
                lines.append(line.strip())
                if len(lines) == after:
                    await asyncio.to_thread(act)
    return lines


async def idle(hub: Hub, within: float) -> float:
    """Seconds until no request is in flight and no slot is taken; fails where that takes longer."""
    started = time.monotonic()

    def free(view: Any) -> bool:
        return view.requests.value.in_flight == () and all(w.busy == 0 for w in view.workers.value.workers)

    await asyncio.to_thread(hub.wait_for, free, within)
    return time.monotonic() - started


async def test_a_killed_worker_ends_its_stream_and_the_next_request_is_served(smollm2: Path) -> None:
    with Hub() as hub:
        hub.add(smollm2)
        hub.load()
        async with aiohttp.ClientSession(headers=hub.headers()) as session:
            lines = await stream_until(session, hub, LONG, 5, lambda: hub.engines()[0].kill())
            error = json.loads(lines[-1][6:])["error"]
            assert error["code"] == "engine_failed"
            assert "SIGKILL" in error["message"]
            assert b"data: [DONE]" not in lines
            assert not any(b'"finish_reason":"stop"' in line for line in lines)
            async with session.post(f"{hub.url}/v1/chat/completions", json=chat_body()) as reply:
                assert reply.status == 200
        assert len(hub.engines()) == 1


async def test_a_killed_node_leaves_nothing_and_comes_back_the_same(smollm2: Path) -> None:
    with Hub(tls=True) as hub:
        hub.add(smollm2)
        hub.load()
        key, fingerprint = hub.key, hub.status()["fingerprint"]
        engines = hub.engines()
        assert len(engines) == 1
        assert any(key in line for line in hub.printed)
        connector = aiohttp.TCPConnector(ssl=hub.tls_context())
        async with aiohttp.ClientSession(headers=hub.headers(), connector=connector) as session:
            with pytest.raises(aiohttp.ClientError):
                await stream_until(session, hub, LONG, 5, lambda: hub.stop(signal.SIGKILL))
        deadline = time.monotonic() + 2.0
        while any(alive(engine) for engine in engines):
            assert time.monotonic() < deadline, "an engine outlived its node by 2 s"
            await asyncio.sleep(0.02)
        await asyncio.to_thread(hub.start)
        assert hub.key == key
        assert hub.status()["fingerprint"] == fingerprint
        assert [model["name"] for model in hub.status()["models"]] == ["tiny"]
        assert not any(key in line for line in hub.printed)
        connector = aiohttp.TCPConnector(ssl=hub.tls_context())
        async with (
            aiohttp.ClientSession(headers=hub.headers(), connector=connector) as session,
            session.post(f"{hub.url}/v1/chat/completions", json=chat_body()) as reply,
        ):
            assert reply.status == 200


@pytest.mark.long
def test_two_nodes_of_one_user_leave_each_other_alone(smollm2: Path) -> None:
    """They share the runtime directory, and each ends what a dead node left: its own, nobody else's."""
    with Hub() as first:
        first.add(smollm2)
        first.load()
        engine = first.engines()[0]
        with Hub(runtime_dir=first.dir) as second:
            second.add(smollm2)
            second.load()
            assert len(second.engines()) == 1
        assert alive(engine)
        assert first.engines() == [engine]


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_term_lets_a_stream_end_and_takes_no_new_work(smollm2: Path) -> None:
    with Hub() as hub:
        hub.add(smollm2)
        hub.load()
        body = {**LONG, "max_tokens": 60}
        statuses: list[int | str] = []

        async with (
            aiohttp.ClientSession(headers=hub.headers()) as session,
            aiohttp.ClientSession(headers=hub.headers()) as kept,
        ):
            async with kept.get(f"{hub.url}/readyz") as reply:
                assert reply.status == 200

            told = asyncio.Event()
            loop = asyncio.get_running_loop()

            def act() -> None:
                assert hub.process is not None
                hub.process.send_signal(signal.SIGTERM)
                time.sleep(0.1)
                loop.call_soon_threadsafe(told.set)

            async def second() -> None:
                await told.wait()
                # The kept connection still answers, and refuses.
                async with kept.post(f"{hub.url}/v1/chat/completions", json=chat_body()) as reply:
                    statuses.append(reply.status)

            late = asyncio.create_task(second())
            lines = await stream_until(session, hub, body, 5, act)
            await late
        assert lines[-1] == b"data: [DONE]"
        assert sum(b'"content":"' in line for line in lines) >= 60
        assert statuses == [503]
        assert await asyncio.to_thread(hub.stop) == 0


@pytest.mark.parametrize("second_signal", [False, True])
async def test_a_stream_longer_than_the_drain_time_ends_with_an_error(
    smollm2: Path, second_signal: bool
) -> None:
    drain = "30s" if second_signal else "500ms"
    with Hub(drain_timeout=drain) as hub:
        hub.add(smollm2)
        hub.load()

        def act() -> None:
            assert hub.process is not None
            hub.process.send_signal(signal.SIGTERM)
            if second_signal:
                time.sleep(0.3)
                hub.process.send_signal(signal.SIGTERM)

        async with aiohttp.ClientSession(headers=hub.headers()) as session:
            lines = await stream_until(session, hub, LONG, 5, act)
        assert json.loads(lines[-1][6:])["error"]["code"] == "shutting_down"
        assert await asyncio.to_thread(hub.stop) == 0


@pytest.mark.parametrize("stream", [True, False])
async def test_leaving_frees_the_slot_within_a_second(hub: Hub, stream: bool) -> None:
    def answering(view: Any) -> bool:
        return any(each.completion_tokens >= 3 for each in view.requests.value.in_flight)

    async def ask() -> None:
        async with (
            aiohttp.ClientSession(headers=hub.headers()) as session,
            session.post(f"{hub.url}/v1/chat/completions", json={**LONG, "stream": stream}) as reply,
        ):
            await reply.read()

    client = asyncio.create_task(ask())
    await asyncio.to_thread(hub.wait_for, answering, 20)
    client.cancel()
    await asyncio.wait([client])
    assert await idle(hub, 5) < 1.0
    assert await engine_is_idle(hub, 1.0)
    requests = hub.view().requests.value
    assert requests is not None
    assert requests.recent[0].state == "cancelled"
    assert requests.recent[0].status == 499
    assert 3 <= requests.recent[0].completion_tokens < 600


async def engine_is_idle(hub: Hub, within: float) -> bool:
    """Whether the engine itself stops working: its CPU time stands still."""
    process = hub.engines()[0]
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        before = sum(process.cpu_times()[:2])
        await asyncio.sleep(0.25)
        if sum(process.cpu_times()[:2]) - before < 0.05:
            return True
    return False


async def test_leaving_during_a_long_prompt_frees_the_slot_within_two_seconds(smollm2: Path) -> None:
    with Hub() as hub:
        hub.add(smollm2, ctx=8192, slots=1)
        hub.load()
        body = chat_body("word " * 7000, max_tokens=5)
        async with aiohttp.ClientSession(headers=hub.headers()) as session:

            async def ask() -> None:
                async with session.post(f"{hub.url}/v1/chat/completions", json=body) as reply:
                    await reply.read()

            def reading(view: Any) -> bool:
                return any(
                    0 < each.prompt_done < each.prompt_tokens for each in view.requests.value.in_flight
                )

            client = asyncio.create_task(ask())
            await asyncio.to_thread(hub.wait_for, reading, 30)
            engine = hub.engines()[0]
            spent = sum(engine.cpu_times()[:2])
            client.cancel()
            await asyncio.wait([client])
            assert await idle(hub, 5) < 1.0
            assert await engine_is_idle(hub, 10.0)
            # Two seconds of its own time: on a busy machine the wall clock counts other programs too.
            assert sum(engine.cpu_times()[:2]) - spent < 2.0
            started = time.monotonic()
            async with session.post(f"{hub.url}/v1/chat/completions", json=chat_body()) as reply:
                assert reply.status == 200
            assert time.monotonic() - started < 10


async def test_a_cold_stream_has_headers_within_a_second_and_heartbeats(smollm2: Path) -> None:
    """The model's load is held up by freezing its process: silence must be filled meanwhile."""
    with Hub(heartbeat="1s") as hub:
        hub.add(smollm2)
        async with aiohttp.ClientSession(headers=hub.headers()) as session:
            started = time.monotonic()
            async with session.post(f"{hub.url}/v1/chat/completions", json=chat_body(stream=True)) as reply:
                assert time.monotonic() - started < 1.0
                assert reply.status == 200
                engine = None
                while engine is None:
                    found = await asyncio.to_thread(hub.engines)
                    # Frozen before it has become the engine, it would freeze its parent as well.
                    engine = next((each for each in found if any("child" in a for a in each.cmdline())), None)
                os.kill(engine.pid, signal.SIGSTOP)
                try:
                    beat = await asyncio.wait_for(reply.content.readline(), 5)
                    assert beat.startswith(b":")
                finally:
                    os.kill(engine.pid, signal.SIGCONT)
                text = (await reply.read()).decode()
        assert text.rstrip().endswith("data: [DONE]")
        for line in text.splitlines():
            assert line == "" or line.startswith((":", "data: "))

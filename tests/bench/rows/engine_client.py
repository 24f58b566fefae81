"""The hand-written client of engines against aiohttp's, each request on a connection of its own."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import aiohttp
import uvloop

from relaydesk.core.gateway.sse import SseParser
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.infer.client import EngineClient
from tests.bench.figure import Figure, pairs
from tests.bench.rig import CHAT, Context, bare_worker, scripted_python

PER_ROUND: Final = 300
_BODY: Final = json.dumps(
    {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 16, "stream": True}
).encode()

Ask = Callable[[], Awaitable[int]]


def engine_client(context: Context) -> list[Figure]:
    """Time and processor time of one streamed answer of 16 tokens out of the scripted engine, to its end."""
    model = context.need_model()
    with scripted_python() as python, bare_worker(model, python=python) as bare:
        return uvloop.run(_compare(context, bare))


async def _compare(context: Context, bare: dict[str, Any]) -> list[Figure]:
    ours = EngineClient(bare["unix"], bare["key"], SystemClock())
    connector = aiohttp.UnixConnector(bare["unix"], force_close=True)
    headers = {"Authorization": f"Bearer {bare['key']}", "Content-Type": "application/json"}

    async def with_ours() -> int:
        count = 0
        async with await ours.stream(CHAT, _BODY) as stream:
            async for _ in stream:
                count += 1
        return count

    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def with_aiohttp() -> int:
            parser, count = SseParser(), 0
            async with session.post(f"http://engine{CHAT}", data=_BODY) as response:
                async for data in response.content.iter_any():
                    count += len(parser.feed(data))
            return count - 1  # [DONE] is not among ours

        if await with_ours() != await with_aiohttp():
            raise RuntimeError("the two clients read different answers")
        rounds = [(await _round(with_aiohttp), await _round(with_ours)) for _ in range(context.pairs)]
    await ours.aclose()
    figures = []
    for index, what in enumerate(("a streamed answer of 16 tokens", "… processor time")):
        figures.append(
            pairs(
                "engine-client",
                f"EngineClient, {what}",
                "µs",
                "ratio",
                [theirs[index] for theirs, _ in rounds],
                [mine[index] for _, mine in rounds],
                against="aiohttp's UnixConnector(force_close)",
            )
        )
    return figures


async def _round(ask: Ask) -> tuple[float, float]:
    cpu, started = time.process_time(), time.perf_counter()
    for _ in range(PER_ROUND):
        await ask()
        await asyncio.sleep(0)
    return (
        (time.perf_counter() - started) / PER_ROUND * 1e6,
        (time.process_time() - cpu) / PER_ROUND * 1e6,
    )

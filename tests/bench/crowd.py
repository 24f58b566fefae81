"""A crowd of clients that keep requests running, and one more whose requests are timed: a process of its own.

Plans come as JSON lines like those of `tests.bench.client`, whose connections it uses.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from typing import Any, Final

import uvloop

from tests.bench import client
from tests.bench.client import _Streamed, _Target, _Whole

# Answers of many lengths, so that they end one by one.
LENGTHS: Final = range(20, 60)
_BEGUN_S: Final = 30.0

_running: Final[list[asyncio.Task[None]]] = []
_open: Final[set[_Streamed]] = set()


async def gather(plan: dict[str, Any]) -> dict[str, Any]:
    """Open ``count`` streams over the ``models`` and keep as many running until `scatter`."""
    target = _Target(plan["target"])
    models, lengths = itertools.cycle(plan["models"]), itertools.cycle(LENGTHS)
    _Streamed.total = 0
    try:
        async with asyncio.timeout(_BEGUN_S):
            for _ in range(plan["count"]):
                body = _body(next(models), next(lengths))
                _running.append(asyncio.create_task(_one(target, target.request("POST", plan["path"], body))))
                await asyncio.sleep(0)
            while _Streamed.total < plan["count"] or len(_open) < plan["count"]:
                await asyncio.sleep(0.02)
                _raise_first()
    except BaseException:
        await _end()
        raise
    return {"open": len(_open)}


async def scatter(_plan: dict[str, Any]) -> dict[str, Any]:
    """Let go of every stream. Raises what one of them ended with."""
    try:
        _raise_first()
    finally:
        await _end()
    return {"tokens": _Streamed.total}


async def _end() -> None:
    for task in _running:
        task.cancel()
    await asyncio.gather(*_running, return_exceptions=True)
    _running.clear()
    _open.clear()


async def tap(plan: dict[str, Any]) -> dict[str, Any]:
    """Requests at fixed times, ``every_s`` for ``window_s``, one connection; milliseconds each.

    One that comes late because the one before it took long is timed from when it was due: whoever waits
    for a stall to end must not be the only one who notices it.
    """
    target = _Target(plan["target"])
    request = target.request("POST", plan["path"], plan["body"].encode())
    connection: _Whole | None = None
    took: list[float] = []
    ended = first = time.perf_counter()
    for number in range(round(plan["window_s"] / plan["every_s"])):
        due = first + number * plan["every_s"]
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        if connection is None or connection.closed:
            connection = await target.connect(_Whole)
        # From when it was due only where the one before held it up: this process's own timers are late too.
        started = due if ended > due else time.perf_counter()
        ended = await connection.send(request)
        took.append((ended - started) * 1000)
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    _raise_first()
    return {"ms": took}


async def _one(target: _Target, request: bytes) -> None:
    while True:
        connection = await target.connect(_Streamed)
        _open.add(connection)
        try:
            while not connection.closed:
                await connection.send(request)
                await asyncio.sleep(0)
        finally:
            _open.discard(connection)
            if connection.transport is not None:
                connection.transport.abort()


def _body(model: str, tokens: int) -> bytes:
    return json.dumps(
        {
            "model": model,
            "messages": [{"role": "user", "content": "Tell a very long story about rain."}],
            "max_tokens": tokens,
            "stream": True,
        }
    ).encode()


def _raise_first() -> None:
    for task in _running:
        if task.done() and not task.cancelled():
            task.result()


client.OPERATIONS.update({"gather": gather, "scatter": scatter, "tap": tap})

if __name__ == "__main__":
    uvloop.run(client.main())

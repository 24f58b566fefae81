"""The load generator: a process of its own that costs little, because it shares the cores with what it loads.

Plans come as JSON lines on standard input, one answer each on standard output. Raw protocols on uvloop;
a stream's tokens are counted by their key in the bytes, nothing is decoded.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from collections.abc import Iterable
from typing import Any, Final, TypeVar, cast

import uvloop

_TOKEN: Final = b'"content":"'
_EMPTY: Final = b'"content":""'
_LAST_CHUNK: Final = b"\r\n0\r\n\r\n"
_TAIL: Final = len(_EMPTY) - 1
_LENGTH: Final = b"content-length:"


class _Connection(asyncio.Protocol):
    """One connection with one request on it at a time."""

    def __init__(self) -> None:
        self.closed = False
        self.transport: asyncio.Transport | None = None
        self.answer: asyncio.Future[float] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _exc: Exception | None) -> None:
        self.closed = True
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(ConnectionError("the connection was closed within an answer"))

    async def send(self, request: bytes) -> float:
        """Send and wait for the whole answer; the clock's time when it was there."""
        assert self.transport is not None
        self.reset()
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self.answer

    def reset(self) -> None: ...

    def finish(self) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(time.perf_counter())

    def refuse(self, data: bytes) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(ValueError(f"an answer that is no 200: {data[:300]!r}"))


class _Streamed(_Connection):
    """Counts tokens; an answer ends with the last chunk of its body."""

    total = 0  # over all connections

    def __init__(self) -> None:
        super().__init__()
        self._tail = b""

    def reset(self) -> None:
        self._tail = b""

    def data_received(self, data: bytes) -> None:
        if not self._tail and not data.startswith(b"HTTP/1.1 200"):
            self.refuse(data)
            return
        window = self._tail + data
        _Streamed.total += window.count(_TOKEN) - window.count(_EMPTY) - self._tail.count(_TOKEN)
        self._tail = window[-_TAIL:]
        if window.endswith(_LAST_CHUNK):
            self.finish()


class _Whole(_Connection):
    """Waits for an answer with a length. ``any_status`` also takes other statuses than 200."""

    any_status = False

    def reset(self) -> None:
        self._data = b""
        self._need = 0

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._need:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._data[:end].lower()
            if not self.any_status and not head.startswith(b"http/1.1 200"):
                self.refuse(self._data)
                return
            length = head.partition(_LENGTH)[2].partition(b"\r\n")[0]
            self._need = end + 4 + int(length)
        if len(self._data) >= self._need:
            self.finish()


C = TypeVar("C", bound=_Connection)


class _Target:
    """Where requests go and how they look."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._unix: str = plan.get("unix", "")
        self._port: int = plan.get("port", 0)
        self._key: str = plan["key"]
        self._tls = ssl.create_default_context(cafile=plan["ca"]) if plan.get("ca") else None

    def request(self, method: str, path: str, body: bytes) -> bytes:
        return (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body

    async def connect(self, kind: type[C]) -> C:
        loop = asyncio.get_running_loop()
        if self._unix:
            return (await loop.create_unix_connection(kind, self._unix))[1]
        name = "localhost" if self._tls is not None else None
        made = await loop.create_connection(
            kind, "127.0.0.1", self._port, ssl=self._tls, server_hostname=name
        )
        return made[1]


async def _again(target: _Target, kind: type[C], old: C | None) -> C:
    """``old``, or a new connection where the server has closed it: engines do after a while."""
    return old if old is not None and not old.closed else await target.connect(kind)


async def streams(plan: dict[str, Any]) -> dict[str, Any]:
    """Keep one streamed request running per body; tokens within a window that begins after ``warm_s``."""
    target = _Target(plan["target"])
    requests = [target.request("POST", plan["path"], body.encode()) for body in plan["bodies"]]
    connections: list[_Streamed | None] = [None] * len(requests)

    async def one(number: int) -> None:
        while True:
            connection = connections[number] = await _again(target, _Streamed, connections[number])
            await connection.send(requests[number])
            await asyncio.sleep(0)  # a server that closes after its answer is noticed now

    _Streamed.total = 0
    running = [asyncio.create_task(one(number)) for number in range(len(requests))]
    try:
        await asyncio.wait(running, timeout=plan["warm_s"], return_when=asyncio.FIRST_EXCEPTION)
        before, started = _Streamed.total, time.perf_counter()
        await asyncio.wait(running, timeout=plan["window_s"], return_when=asyncio.FIRST_EXCEPTION)
        count, took = _Streamed.total - before, time.perf_counter() - started
        for task in running:
            if task.done():
                task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        _abort(connections)
    return {"rate": count / took, "tokens": _Streamed.total}


async def ask(plan: dict[str, Any]) -> dict[str, Any]:
    """``count`` requests to each target, one at a time and in turns; milliseconds each.

    A target may have a ``body`` of its own, and be ``streamed``: then its last chunk is waited for.
    """
    targets = [_Target(each) for each in plan["targets"]]
    method, path, body = plan.get("method", "POST"), plan["path"], plan.get("body", "")
    requests = [
        target.request(method, path, each.get("body", body).encode())
        for target, each in zip(targets, plan["targets"], strict=True)
    ]
    kinds = [_Streamed if each.get("streamed") else _Whole for each in plan["targets"]]
    _Whole.any_status = plan.get("any_status", False)
    connections: list[_Connection | None] = [None] * len(targets)
    took: list[list[float]] = [[] for _ in targets]
    for _ in range(plan["count"]):
        for number, target in enumerate(targets):
            connection = connections[number] = await _again(target, kinds[number], connections[number])
            started = time.perf_counter()
            ended = await connection.send(requests[number])
            took[number].append((ended - started) * 1000)
            await asyncio.sleep(0)
    _abort(connections)
    return {"ms": took}


_held: Final[list[_Whole | None]] = []


async def hold(plan: dict[str, Any]) -> dict[str, Any]:
    """Open ``count`` connections, ask once on each, and keep them idle until `release`."""
    target = _Target(plan["target"])
    request = target.request("GET", plan["path"], b"")
    _Whole.any_status = False
    for _ in range(plan["count"]):
        connection = await target.connect(_Whole)
        await connection.send(request)
        _held.append(connection)
    return {"held": len(_held)}


async def release(_plan: dict[str, Any]) -> dict[str, Any]:
    """Close what `hold` holds."""
    open_still = sum(1 for connection in _held if connection is not None and not connection.closed)
    _abort(_held)
    _held.clear()
    return {"open": open_still}


def _abort(connections: Iterable[_Connection | None]) -> None:
    for connection in connections:
        if connection is not None and connection.transport is not None:
            connection.transport.abort()


OPERATIONS: Final = {"streams": streams, "ask": ask, "hold": hold, "release": release}


async def main() -> None:
    """Answer plans until the input ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        plan = json.loads(line)
        cpu = time.process_time()
        try:
            reply = await OPERATIONS[plan["op"]](plan)
            reply["cpu_s"] = time.process_time() - cpu
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    uvloop.run(main())

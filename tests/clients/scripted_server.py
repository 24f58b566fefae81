"""An OpenAI-compatible server that answers by script, for answers that must be exact.

A request chooses its scenario by a mark in its text, such as ``[two-calls]``; without one the answer is
``Hello there``. It says things as badly as real servers do, because the hub has to set them right.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Final, Self

from aiohttp import web

# Longer than the hub's heartbeat in these tests.
SLOW_S: Final = 1.2
_MARK: Final = re.compile(r"\[([a-z0-9-]+)\]")

Step = bytes | float | None
"""Bytes to send, seconds of silence, or None for a connection that breaks."""


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """One chunk of a chat, with the null error that some servers put into each."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return _frame({"id": "far-1", "object": "chat.completion.chunk", "choices": [choice], "error": None})


def _frame(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _ending(finish: str, tokens: int) -> list[Step]:
    usage = {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}
    return [chunk({}, finish), _frame({"choices": [], "usage": usage}), b"data: [DONE]\n\n"]


def _call(index: int | None, call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    call: dict[str, Any] = {"type": "function", "function": function}
    if index is not None:
        call["index"] = index
    if call_id is not None:
        call["id"] = call_id
    return {"tool_calls": [call]}


def _two_calls(body: dict[str, Any]) -> list[Step]:
    """Both at index 0 and in pieces; once their results are there, text (report B01)."""
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if results:
        return [chunk({"content": f"Results: {', '.join(results)}"}), *_ending("stop", 3)]
    return [
        chunk(_call(0, "call_a", "weather", "")),
        chunk(_call(0, None, None, '{"town":')),
        chunk(_call(0, None, None, '"Oslo"}')),
        chunk(_call(0, "call_b", "weather", '{"town":"Rome"}')),
        *_ending("tool_calls", 9),
    ]


def _text(*texts: str, finish: str = "stop") -> Callable[[dict[str, Any]], list[Step]]:
    return lambda _: [*(chunk({"content": text}) for text in texts), *_ending(finish, len(texts))]


SCENARIOS: Final[dict[str, Callable[[dict[str, Any]], list[Step]]]] = {
    "hello": _text("Hello", " there"),
    "cut": _text("Hello", finish="length"),
    "unicode": _text("Grüße ", "😊", "漢字", "\u2028", "\x00"),
    "two-calls": _two_calls,
    # Comments and fields of the far server must not become data of ours (report B15).
    "comments": lambda body: [
        b": far comment\n\n",
        b"retry: 10\n\n",
        chunk({"content": "Hello"}),
        b": ping\n\n",
        b"id: 7\n" + chunk({"content": " there"}),
        *_ending("stop", 2),
    ],
    "slow": lambda body: [chunk({"content": "so "}), SLOW_S, chunk({"content": "late"}), *_ending("stop", 2)],
    "brief": lambda body: [chunk({"content": "so "}), 0.3, chunk({"content": "late"}), *_ending("stop", 2)],
    "endless": lambda body: [chunk({"content": "more "}), 0.02] * 1000,
    "breaks": lambda body: [chunk({"content": "Hel"}), chunk({"content": "lo"}), 0.1, None],
    "fails": lambda body: [
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}),
        _frame({"error": {"message": "the far side is out of memory", "type": "server_error", "code": 500}}),
    ],
}


class ScriptedServer:
    """Serves on loopback, in a thread of its own, while it is entered. ``bodies`` are the chats it got."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        self._loop.close()

    def _serve(self) -> None:
        self._loop.run_until_complete(self._main())

    async def _main(self) -> None:
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._started.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        async for data in _steps(SCENARIOS[_scenario(json.dumps(body["messages"]))](body)):
            if data is None:
                assert request.transport is not None
                request.transport.abort()
                break
            await response.write(data)
        return response


def _scenario(text: str) -> str:
    found = _MARK.search(text)
    return found[1] if found else "hello"


async def _steps(steps: list[Step]) -> AsyncIterator[bytes | None]:
    for step in steps:
        if isinstance(step, float):
            await asyncio.sleep(step)
        else:
            yield step

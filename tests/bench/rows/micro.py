"""Pieces of the hot path on their own, in microseconds a call: to see which one grew."""

from __future__ import annotations

import asyncio
import json
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Final

from relaydesk.config.load import load
from relaydesk.config.paths import resolve
from relaydesk.core.gateway.chat_output import ChatOutput
from relaydesk.core.gateway.ollama.chat import chat_plan
from relaydesk.core.gateway.ollama.output import OllamaOutput, chat_said
from relaydesk.core.gateway.output import Identity, Output
from relaydesk.core.gateway.piece import ChoiceStream
from relaydesk.core.gateway.rebuild import engine_body
from relaydesk.core.gateway.request import parse_chat
from relaydesk.core.gateway.sse import SseParser
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.text import safe_text
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.infer.http1 import ResponseParser
from relaydesk.engine.logbook import LogBook
from relaydesk.engine.node import Node
from relaydesk.engine.pool.views import models_view
from tests.bench.figure import Figure, value
from tests.bench.rig import Context, temporary

MODELS: Final = 50

_CHUNK: Final = (
    b'{"choices":[{"finish_reason":null,"index":0,"delta":{"content":" word"}}],"created":1796007817,'
    b'"id":"chatcmpl-6KzHbjB0YJljhTUSFBZKQWDWFQ5aN6JR","model":"tiny","system_fingerprint":"b0-unknown",'
    b'"object":"chat.completion.chunk"}'
)
_EVENT: Final = b"data: " + _CHUNK + b"\n\n"
_HTTP_CHUNK: Final = b"%x\r\n%b\r\n" % (len(_EVENT), _EVENT)
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nContent-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\nKeep-Alive: timeout=5, max=100\r\n\r\n"
)


def micro(context: Context) -> list[Figure]:
    """Every piece in turn, ``pairs`` times over."""
    pieces = _pieces()
    took: dict[str, list[float]] = {name: [] for name in pieces}
    for _ in range(context.pairs):
        for name, call in pieces.items():
            took[name].append(_micros(call))
    found = [value("micro", name, "µs", values) for name, values in took.items()]
    if context.model is not None:
        views = asyncio.run(_models_view(context.model, context.pairs))
        found.append(value("micro", f"models_view of {MODELS} models", "µs", views))
    return found


def _pieces() -> dict[str, Callable[[], object]]:
    identity = Identity("0123456789abcdef01234567", "tiny", 1_796_007_817_000)
    rewrite = _rewriting(ChatOutput(identity))
    translate = _rewriting(OllamaOutput(identity, chat_said))
    sse, http = SseParser(), ResponseParser()
    http.feed(_HEAD)
    small, long = _request(40), _request(200_000)
    parsed = parse_chat(small)
    return {
        "HTTP chunk off the wire": lambda: http.feed(_HTTP_CHUNK),
        "SSE event out of it": lambda: sse.feed(_EVENT),
        "chunk rewritten": rewrite,
        "chunk translated to a line of Ollama's": translate,
        "parse_chat, 40 characters": lambda: parse_chat(small),
        "Ollama's chat_plan, 40 characters": lambda: chat_plan(small),
        "parse_chat, 200,000 characters": lambda: parse_chat(long),
        "Ollama's chat_plan, 200,000 characters": lambda: chat_plan(long),
        "engine_body": lambda: engine_body(parsed, alias="tiny", slot=1, cache_prompt=True),
        "safe_text, safe already": lambda: safe_text("SmolLM2-135M-Instruct.Q4_1.gguf"),
        "safe_text, 256 characters with controls": lambda: safe_text("a\x1b[1mb \t" * 32),
    }


def _rewriting(output: Output) -> Callable[[], bytes]:
    """One engine chunk read and said by ``output``, again and again."""
    reader = ChoiceStream()

    def rewrite() -> bytes:
        piece = reader.read(_CHUNK)
        return output.piece(0, piece) if piece is not None else b""

    rewrite()
    return rewrite


def _request(length: int) -> bytes:
    messages = [
        {"role": "system", "content": "You are brief."},
        {"role": "user", "content": ('Tell me "more" about it. ' * (length // 20))[:length]},
    ]
    return json.dumps({"model": "tiny", "messages": messages, "max_tokens": 16, "temperature": 0}).encode()


def _micros(call: Callable[[], object]) -> float:
    timer = timeit.Timer(call)
    number, took = timer.autorange()
    return min(took, timer.timeit(number)) / number * 1e6


async def _models_view(model: Path, rounds: int) -> list[float]:
    """A real node with many models; nothing of it listens."""
    with temporary() as directory:
        environment = {"RELAY_STATE_DIR": str(directory / "state"), "RELAY_SOCKET": str(directory / "c.sock")}
        (directory / "state").mkdir(mode=0o700)
        loaded = load(environment)
        paths = resolve(loaded.settings)
        node = Node(loaded, paths, LogBook(), SystemClock(), SystemRng(), environment)
        await node.open()
        try:
            for number in range(MODELS):
                await node.registry.add(ModelSpec(name=f"model-{number}", path=str(model)))
            models_view(node.pool, node.journal)
            return [_micros(lambda: models_view(node.pool, node.journal)) for _ in range(rounds)]
        finally:
            await node.close()

"""Engines that play a script, in this process: everything above them runs for real."""

from __future__ import annotations

import asyncio
import base64
import itertools
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import msgspec

from relaydesk.core.errors import FaultError, PeerError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.pool.setup import WRITES, EngineSetup
from relaydesk.engine.infer.engine import EngineReply
from relaydesk.engine.infer.spec import EngineReady
from relaydesk.engine.pool.starter import RunningEngine

# A payload to send, seconds to be silent, an event to wait for, or how it breaks.
Step = bytes | float | asyncio.Event | Exception


@dataclass
class Script:
    """One answer: its status, and its events or the body of an error."""

    steps: Sequence[Step] = ()
    status: int = 200
    body: bytes = b""
    # Passed before the head of the answer comes.
    before: Sequence[float | asyncio.Event] = ()


def piece(text: str | None = None, finish: str | None = None, **more: Any) -> bytes:
    """A chunk as llama.cpp's server writes it, with what must not reach a client."""
    delta = {} if text is None else {"content": text}
    return msgspec.json.encode(
        {
            "choices": [{"finish_reason": finish, "index": 0, "delta": delta}],
            "created": 1,
            "id": "chatcmpl-engine",
            "model": "/models/secret.gguf",
            "system_fingerprint": "b1",
            "object": "chat.completion.chunk",
            **more,
        }
    )


def usage(prompt: int, completion: int, cached: int = 0) -> bytes:
    """The chunk that closes an account."""
    return msgspec.json.encode(
        {
            "choices": [],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
                "prompt_tokens_details": {"cached_tokens": cached},
            },
        }
    )


def answer(*texts: str, prompt: int = 5, delay: float = 0.0) -> Script:
    """A whole good answer of one token a text."""
    steps: list[Step] = [piece(None, None, prompt_progress={"total": prompt, "processed": prompt})]
    for text in texts:
        steps += [delay, piece(text)] if delay else [piece(text)]
    return Script([*steps, piece(None, "stop"), usage(prompt, len(texts))])


# Answers to requests for a whole answer, by path and body.
Whole = Callable[[str, dict[str, Any]], Script]
DIMENSIONS = 64


def whole(path: str, body: dict[str, Any]) -> Script:
    """A tokenizer whose tokens are bytes, and embeddings that tell the tokens apart."""
    if path == "/tokenize":
        return Script(body=msgspec.json.encode({"tokens": list(body["content"].encode())}))
    if path != "/v1/embeddings":
        return Script(body=b"{}")
    ids = body["input"]
    vector = [0.0] * DIMENSIONS
    for place, token in enumerate(ids):
        vector[token % DIMENSIONS] += 1 / len(ids) / (1 + place)
    if "embd_normalize" not in body:
        length = sum(number * number for number in vector) ** 0.5
        vector = [number / length for number in vector]
    data = base64.b64encode(struct.pack(f"<{DIMENSIONS}f", *vector)).decode()
    usage = {"prompt_tokens": len(ids), "total_tokens": len(ids)}
    return Script(body=msgspec.json.encode({"data": [{"embedding": data, "index": 0}], "usage": usage}))


class ScriptedStream:
    """`EngineStream` over a script. It ends early where its engine dies."""

    def relax(self) -> None:
        """Steps come as the script says: only noted."""
        self.relaxed = True

    def __init__(self, engine: ScriptedEngine, script: Script) -> None:
        self.status = script.status
        self.headers: Mapping[str, str] = {}
        self.error_body = script.body
        self._steps = iter(script.steps)
        self._engine = engine
        self._closed = False
        self.relaxed = False
        engine.open += 1
        engine.most_open = max(engine.most_open, engine.open)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        assert not self._closed, "a closed stream was read"
        if self.status != 200:
            raise StopAsyncIteration
        for step in self._steps:
            await self._engine.wait(step)
            if isinstance(step, bytes):
                return step
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            self._engine.open -= 1


class ScriptedEngine:
    """`Engine` whose answers come from ``reply``. ``bodies`` are the requests, decoded."""

    def __init__(
        self,
        reply: Callable[[dict[str, Any]], Script],
        stop_s: float = 0.0,
        whole: Whole = whole,
    ) -> None:
        self.reply = reply
        self.whole = whole
        # Requests for a whole answer: path and body.
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.bodies: list[dict[str, Any]] = []
        self.open = 0
        self.most_open = 0
        self.alive = True
        self.stops = 0
        self._stop_s = stop_s
        self._dead = asyncio.Event()

    async def stream(self, path: str, body: bytes, *, ends_with_done: bool = True) -> ScriptedStream:
        request = msgspec.json.decode(body)
        self.bodies.append(request)
        script = self.reply(request)
        for step in script.before:
            await self.wait(step)
        self._check()
        return ScriptedStream(self, script)

    async def json(self, method: str, path: str, body: bytes | None = None) -> EngineReply:
        self._check()
        request = msgspec.json.decode(body) if body else {}
        self.asked.append((path, request))
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            script = self.whole(path, request)
            for step in script.before:
                await self.wait(step)
            self._check()
        finally:
            self.open -= 1
        return EngineReply(script.status, {}, script.body)

    async def health(self) -> bool:
        return self.alive

    async def aclose(self) -> None:
        if self._stop_s and self.alive:
            await asyncio.sleep(self._stop_s)
        self.stops += 1
        self.die()

    def die(self) -> None:
        """Break every connection, as the end of a process does."""
        self.alive = False
        self._dead.set()

    async def wait(self, step: Step) -> None:
        """Let one step happen, or fail because the engine died first."""
        self._check()
        if isinstance(step, Exception):
            raise step
        if isinstance(step, float | asyncio.Event):
            passed = asyncio.ensure_future(asyncio.sleep(step) if isinstance(step, float) else step.wait())
            died = asyncio.ensure_future(self._dead.wait())
            try:
                await asyncio.wait([passed, died], return_when=asyncio.FIRST_COMPLETED)
            finally:
                passed.cancel()
                died.cancel()
        self._check()

    def _check(self) -> None:
        if not self.alive:
            raise PeerError("engine_failed", "the engine broke off its answer")


@dataclass
class ScriptedStarter:
    """`Starter` of scripted engines.

    ``gate`` holds loads while it is clear; ``errors`` are what the next loads end with; ``load_s`` and
    ``stop_s`` are how long starting and stopping take.
    """

    reply: Callable[[dict[str, Any]], Script] = field(default=lambda _: answer("Hello", " there"))
    whole: Whole = whole
    load_s: float = 0.0
    stop_s: float = 0.0
    errors: list[FaultError] = field(default_factory=list)
    ready: EngineReady | None = None
    engines: dict[str, list[ScriptedEngine]] = field(default_factory=dict)
    starts: list[ModelSpec] = field(default_factory=list)
    setups: dict[str, EngineSetup] = field(default_factory=dict)
    cancelled: int = 0

    def __post_init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self._exits: dict[int, asyncio.Future[str]] = {}
        self._pids = itertools.count(4_000_000)

    async def start(
        self,
        spec: ModelSpec,
        ctx: int,
        timeout_s: float,
        on_progress: Callable[[float | None], None],
        setup: EngineSetup = WRITES,
    ) -> RunningEngine:
        self.starts.append(spec)
        self.setups[spec.name] = setup
        try:
            on_progress(0.25)
            if self.load_s:
                await asyncio.sleep(self.load_s)
            await self.gate.wait()
            on_progress(0.75)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.errors:
            raise self.errors.pop(0)
        engine = ScriptedEngine(
            lambda request: self.reply(request), self.stop_s, lambda path, body: self.whole(path, body)
        )
        exited: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._exits[id(engine)] = exited
        self.engines.setdefault(spec.name, []).append(engine)
        extensions = spec.kind != "url"
        return RunningEngine(
            engine, spec.name, next(self._pids), "unix:/run/x", extensions, exited, self.ready, None
        )

    def engine(self, name: str) -> ScriptedEngine:
        """The newest engine of a model."""
        return self.engines[name][-1]

    def crash(self, name: str, reason: str = "it was killed") -> None:
        """The newest engine's process ends by itself."""
        engine = self.engine(name)
        engine.die()
        exited = self._exits[id(engine)]
        if not exited.done():
            exited.set_result(reason)

    @property
    def alive(self) -> list[str]:
        """Names of models whose engines run; a name is there once for each engine."""
        return [name for name, engines in self.engines.items() for engine in engines if engine.alive]

    @property
    def open(self) -> int:
        """Answers in progress over all engines."""
        return sum(engine.open for engines in self.engines.values() for engine in engines)

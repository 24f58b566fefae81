"""What one key can find out about another, and how many requests of one ever run, on real workers."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from relaydesk.config.load import load
from relaydesk.config.paths import resolve
from relaydesk.core.commands import AddKey, AddModel, LoadModel
from relaydesk.core.pool.model import ModelSpec
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.logbook import LogBook
from relaydesk.engine.node import Node
from relaydesk.engine.tasks import cancel_and_wait, spawn
from relaydesk.surfaces.host import Host
from tests.support.hub import Hub

pytestmark = pytest.mark.engine

LIMIT = 3
PAIRS = 200
ENOUGH_S = 90.0


@pytest.fixture(scope="module")
def hub(smollm2: Path) -> Iterator[Hub]:
    with Hub() as running:
        running.add(smollm2, slots=2, ctx=512)
        running.load()
        yield running


def key(hub: Hub, name: str, **settings: int) -> dict[str, str]:
    return {"Authorization": f"Bearer {hub.command('add-key', name=name, settings=settings)['key']}"}


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """Short enough for a socket's address."""
    with tempfile.TemporaryDirectory(prefix="rd-") as name:
        yield Path(name)


async def test_a_worker_never_sees_more_of_a_key_than_its_limit(short_dir: Path, smollm2: Path) -> None:
    """30 at once, half in each dialect: what the engine itself counts, sampled all along."""
    host = host_in(short_dir)
    listening: asyncio.Future[Node] = asyncio.get_running_loop().create_future()
    running = spawn(host.run(lambda node, _key: listening.set_result(node)), name="host")
    node = await asyncio.wait_for(listening, 20)
    spec = ModelSpec(name="tiny", path=str(smollm2), slots=8, ctx=512)
    await node.api.call(AddModel(spec))
    await node.api.call(LoadModel("tiny"))
    made = await node.api.call(AddKey("burst", {"max_concurrency": LIMIT}))
    while not node.pool.is_warm("tiny"):
        await asyncio.sleep(0.05)
    engine = node.pool.runner("tiny").running
    assert engine is not None
    seen: list[int] = []

    async def sample() -> None:
        while True:
            text = (await engine.engine.json("GET", "/metrics")).body.decode()
            seen.append(int(text.partition("\nllamacpp:requests_processing ")[2].split("\n")[0]))

    async def ask(http: httpx.AsyncClient, number: int) -> int:
        said = [{"role": "user", "content": f"Write a line about {number}."}]
        body: dict[str, Any] = {"model": "tiny", "messages": said}
        if number % 2:
            route, more = "/api/chat", {"options": {"num_predict": 24}, "stream": False}
        else:
            route, more = "/v1/chat/completions", {"max_tokens": 24}
        return (await http.post(node.listening[0] + route, json=body | more)).status_code

    sampling = spawn(sample(), name="sample")
    headers = {"Authorization": f"Bearer {made.value['key']}"}
    async with httpx.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
        statuses = await asyncio.gather(*(ask(http, number) for number in range(30)))
    await cancel_and_wait(sampling)
    host.stop()
    await running
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= LIMIT
    assert 1 <= max(seen) <= LIMIT


def host_in(directory: Path) -> Host:
    """A node with its listeners in this process, its engines with counters."""
    environ = {
        "RELAY_STATE_DIR": str(directory / "state"),
        "RELAY_LISTEN": "127.0.0.1:0",
        "RELAY_THREADS": "1",
        "XDG_RUNTIME_DIR": str(directory),
        "XDG_CONFIG_HOME": str(directory / "config"),
    }
    loaded = load(env=environ)
    paths = resolve(loaded.settings, environ)
    return Host(loaded, paths, LogBook(), SystemClock(), SystemRng(), environ, metrics=True)


@pytest.mark.long
@pytest.mark.timeout(280)
def test_time_tells_one_key_nothing_of_what_another_asked(hub: Hub) -> None:
    """200 pairs: a prefix that the other key has just sent, and one that nobody has, in turns.

    With a shared cache the first kind would be the faster one in almost all pairs: a prefix of 40 tokens is
    most of the prompt. Without one they are even, so that the faster one is a matter of chance.
    """
    ann, bob = key(hub, "ann"), key(hub, "bob")
    words = [f"{first}{last}" for first in "bcdfghklmnpr" for last in ("ane", "ote", "ilk", "urn", "est")]

    def prefix(number: int) -> str:
        return " ".join(words[(number * 7 + step * (number % 11 + 1)) % len(words)] for step in range(14))

    def first_token(headers: dict[str, str], text: str) -> tuple[float, int]:
        body = {"model": "tiny", "messages": [{"role": "user", "content": text}], "max_tokens": 1}
        began = time.perf_counter()
        reply = httpx.post(
            hub.url + "/v1/chat/completions", json=body, headers=headers, timeout=60, trust_env=False
        )
        took = time.perf_counter() - began
        return took, reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"]

    faster, cached, differences = 0, set(), []
    began = time.monotonic()
    for number in range(PAIRS):
        if time.monotonic() - began > ENOUGH_S and number >= PAIRS // 2:
            break  # a slow machine: half of them tell enough
        known, unknown = prefix(2 * number), prefix(2 * number + 1)
        if number // 2 % 2:
            # Texts differ in their tokens: each kind has both sorts of numbers equally often.
            known, unknown = unknown, known
        first_token(ann, known)
        order = (known, unknown) if number % 2 else (unknown, known)
        times = {}
        for text in order:
            times[text], count = first_token(bob, text)
            cached.add(count)
        faster += times[known] < times[unknown]
        differences.append(times[known] - times[unknown])
    pairs = len(differences)
    print(f"known faster in {faster} of {pairs}, median difference {statistics.median(differences):.4f} s")
    # What a chat's template begins with may be the key's own; nothing of the other's words is.
    assert max(cached) < 40
    # Chance alone stays within this on all but one of 10,000 runs, of half the pairs on all but one of 100.
    assert pairs * 0.36 < faster < pairs * 0.64

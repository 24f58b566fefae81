"""What a whole exchange adds to the inference that it buys, and what sealing one frame of it costs.

Client, relay and target are processes on loopback, with a price and credit. The engine answers at once, so
that what is left is reserve, payment, the seal, the hops, the receipt and both books.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from relaydesk.core.relay.sealed.box import NONCE_SIZE
from relaydesk.core.relay.sealed.box import Exchange as Sealed
from relaydesk.core.relay.sealed.stream import Sealer
from relaydesk.core.relay.sealed.stream_reader import Content, StreamReader
from tests.bench.figure import Budget, Figure, pairs, value
from tests.bench.rig import CHAT, CTX, HERE, NAME, SLOTS, Context, scripted_python, temporary
from tests.bench.rows.latency import body
from tests.bench.stats import percentile
from tests.support.operators import Operators, Plan

TOKENS: Final = 16
PER_ROUND: Final = 40
FRAMES: Final = 2000
# What was agreed to before is settled, the ticket is opened, the receipt is written down.
COMMITS: Final = 3
# microUSDC: what an exchange here costs is some ten of them.
RATES: Final = {"input_rate": 100_000, "output_rate": 400_000}
CREDIT: Final = 100_000_000
_OFFERED_S: Final = 30.0

_CHUNK: Final = (
    b'{"choices":[{"finish_reason":null,"index":0,"delta":{"content":" word"}}],"created":1796007817,'
    b'"id":"chatcmpl-6KzHbjB0YJljhTUSFBZKQWDWFQ5aN6JR","model":"tiny","object":"chat.completion.chunk"}'
)


def whole(context: Context) -> list[Figure]:
    """The same 16 tokens asked of the target's node by a client of its own, and through the network."""
    with _network(context) as ways:
        found = [each for streamed in (False, True) for each in _compare(context, ways, streamed=streamed)]
    name = f"a synced commit, of which an exchange waits for {COMMITS}"
    return [*found, value("exchange", name, "ms", _commits())]


def _commits() -> list[float]:
    """What the disk takes for a commit like those of the target's books, in ms."""
    took = []
    with temporary() as directory, closing(sqlite3.connect(directory / "commits.db")) as conn:
        for order in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE rows (row)"):
            conn.execute(order)
        for _ in range(PER_ROUND):
            started = time.perf_counter()
            with conn:
                conn.execute("INSERT INTO rows VALUES (?)", (b"x" * 500,))
            took.append((time.perf_counter() - started) * 1000)
    return took


def frame(context: Context) -> list[Figure]:
    """Sealing and opening one streamed chunk, in the middle of a stream."""
    sealing, opening = [], []
    for _ in range(context.pairs):
        exchange = Sealed(os.urandom(32), "T" * 52, "A" * 22 + "==")
        sealer, reader = Sealer(exchange), StreamReader(exchange)
        started = time.perf_counter()
        events = [sealer.content(_CHUNK, os.urandom(NONCE_SIZE)) for _ in range(FRAMES)]
        sealed = time.perf_counter()
        opened = [reader.feed(event) for event in events]
        ended = time.perf_counter()
        if opened[-1] != [Content(_CHUNK)] or reader.body_hash != sealer.body_hash:
            raise RuntimeError("what was sealed did not open")
        sealing.append((sealed - started) / FRAMES * 1e6)
        opening.append((ended - sealed) / FRAMES * 1e6)
    name = f"a streamed frame of {len(_CHUNK)} bytes"
    return [
        value("exchange-frame", f"{name}, sealed", "µs", sealing, budget=Budget(30.0)),
        value("exchange-frame", f"{name}, opened", "µs", opening, budget=Budget(30.0)),
    ]


@dataclass(frozen=True)
class _Way:
    """Where the load generator asks, with which key, for which model."""

    port: int
    key: str
    model: str

    def asked(self, *, streamed: bool) -> dict[str, Any]:
        more = {"stream": True, "stream_options": {"include_usage": True}} if streamed else {}
        text = body(TOKENS, model=self.model, **more)
        return {"port": self.port, "key": self.key, "body": text, "streamed": streamed}


@contextmanager
def _network(context: Context) -> Iterator[tuple[_Way, _Way]]:
    """Asked directly, and through the network."""
    model = context.need_model()
    with scripted_python() as python:
        # A relay takes so many requests of one address, and here all are of one.
        plan = Plan(settings={"RELAY_PER_MINUTE": "1000000"})
        operators = Operators(plan, plan, plan)
        _, target, client = operators
        target._env |= {"PYTHONPATH": str(HERE / "site"), "BENCH_ENGINE": python}
        with operators:
            target.add(model, NAME, ctx=CTX, slots=SLOTS, offer=True, **RATES)
            target.load(NAME)
            code = target.command("issue-credit", amount=CREDIT, note="bench")["code"]
            client.command("redeem-credit", code=code)
            limits = {"network": True, "credit_per_day": CREDIT}
            key = client.command("add-key", name="bench", settings=limits)["key"]
            _until_offered(operators)
            yield _Way(target.port, target.key, NAME), _Way(client.port, key, f"net/{NAME}")


def _until_offered(operators: Operators) -> None:
    client = operators[2]

    def offered() -> bool:
        client.command("probe-relays")
        return any(NAME in relay.models for relay in client.relays())

    operators.wait(offered, "nothing is offered", _OFFERED_S)


def _compare(context: Context, ways: tuple[_Way, _Way], *, streamed: bool) -> list[Figure]:
    plan = {"targets": [way.asked(streamed=streamed) for way in ways], "path": CHAT}
    context.load("ask", **plan, count=5)
    rounds = [context.load("ask", **plan, count=PER_ROUND)["ms"] for _ in range(context.pairs)]
    label = f"a whole exchange, {TOKENS} tokens {'streamed' if streamed else 'unstreamed'}"
    found = []
    for share in (0.5, 0.99):
        # A round is too short for a tail: that one is taken over all requests of the run.
        parts = rounds if share == 0.5 else [[list(chain(*each)) for each in zip(*rounds, strict=True)]]
        found.append(
            pairs(
                "exchange",
                f"{label}, p{share * 100:.0f}",
                "ms",
                "added",
                [percentile(direct, share) for direct, _ in parts],
                [percentile(through, share) for _, through in parts],
                against="the target's node asked directly",
                budget=Budget(15.0) if share == 0.5 else None,
            )
        )
    return found

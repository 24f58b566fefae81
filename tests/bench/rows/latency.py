"""What the hub adds to an unstreamed request, against the same request asked of a worker directly."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Final

from tests.bench.figure import Budget, Figure, pairs, value
from tests.bench.rig import CHAT, NAME, BenchHub, Context, bare_worker, cpu_s, scripted_python
from tests.bench.stats import percentile

# Added p50 and p99 in ms.
BUDGETS = {"plain": (1.0, 3.0), "TLS": (1.3, 4.0)}


# What the hub adds to every request, so that a client's leaving frees the slot.
_AS_THE_HUB: Final = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}


def body(max_tokens: int, **more: Any) -> str:
    """A short deterministic request."""
    return json.dumps(
        {
            **more,
            "messages": [{"role": "user", "content": "Tell a very long story about rain."}],
            "max_tokens": max_tokens,
            "temperature": 0,
            "seed": 1,
        }
    )


def sixteen(context: Context) -> list[Figure]:
    """The row of the design."""
    return _real(context, "latency", 16, per_round=8, budgets=True)


def one(context: Context) -> list[Figure]:
    """The same with one token, where the engine's own noise is least."""
    return _real(context, "latency-1", 1, per_round=40, budgets=False)


def _real(context: Context, row: str, tokens: int, per_round: int, budgets: bool) -> list[Figure]:
    model = context.need_model()
    with _hubs(model) as (hubs, stack):
        bare = stack.enter_context(bare_worker(model))
        return _compare(context, row, f"unstreamed, {tokens} tokens", bare, hubs, tokens, per_round, budgets)


def scripted(context: Context) -> list[Figure]:
    """The same against an engine that answers at once: what is left is the hub, its socket and its client."""
    return _scripted(context, "latency-scripted", NAME, "a scripted engine", per_round=100)


def late(context: Context) -> list[Figure]:
    """The same against an engine that answers after 15 ms: the hub's code is cold by then."""
    return _scripted(context, "latency-late", "late", "an engine 15 ms late", per_round=30)


def _scripted(context: Context, row: str, name: str, what: str, per_round: int) -> list[Figure]:
    model = context.need_model()
    with scripted_python() as python, _hubs(model, name, engine=python) as (hubs, stack):
        bare = stack.enter_context(bare_worker(model, name, python=python))
        return _compare(context, row, f"unstreamed, 16 tokens, {what}", bare, hubs, 16, per_round, False)


@contextmanager
def _hubs(model: Path, name: str = NAME, engine: str = "") -> Iterator[tuple[dict[str, BenchHub], ExitStack]]:
    with ExitStack() as stack:
        hubs = {
            way: stack.enter_context(BenchHub(tls=way == "TLS", engine=engine)).serve(model, name)
            for way in ("plain", "TLS")
        }
        yield hubs, stack


def _compare(
    context: Context,
    row: str,
    label: str,
    bare: dict[str, Any],
    hubs: dict[str, BenchHub],
    tokens: int,
    per_round: int,
    budgets: bool,
) -> list[Figure]:
    as_the_hub_asks = {**bare, "body": body(tokens, **_AS_THE_HUB), "streamed": True}
    targets = [bare, *(hub.target() for hub in hubs.values()), as_the_hub_asks]
    plan: dict[str, Any] = {"targets": targets, "path": CHAT, "body": body(tokens)}
    context.load("ask", **plan, count=3)  # prompts are cached from now on, in each engine alike
    before = {way: cpu_s(hub.pid) for way, hub in hubs.items()}
    rounds = [context.load("ask", **plan, count=per_round)["ms"] for _ in range(context.pairs)]
    asked = context.pairs * per_round
    found = []
    ways = [*hubs, "the worker itself, asked streamed as the hub asks it"]
    for number, way in enumerate(ways, 1):
        limits = BUDGETS[way] if budgets and way in BUDGETS else (None, None)
        for share, limit in zip((0.5, 0.99), limits, strict=True):
            # A round is too short for a tail: that one is taken over all requests of the run.
            parts = rounds if share == 0.5 else [[list(chain(*whole)) for whole in zip(*rounds, strict=True)]]
            found.append(
                pairs(
                    row,
                    f"{label}, {way}, p{share * 100:.0f}",
                    "ms",
                    "added",
                    [percentile(each[0], share) for each in parts],
                    [percentile(each[number], share) for each in parts],
                    against="the worker",
                    budget=Budget(limit) if limit is not None else None,
                )
            )
        added = [b - a for each in rounds for a, b in zip(each[0], each[number], strict=True)]
        context.note(f"{way}: median of {asked} differences one by one {statistics.median(added):.2f} ms")
    if row == "latency-scripted":  # with a real engine the hub's idle time between requests counts for more
        for way, hub in hubs.items():
            cost = (cpu_s(hub.pid) - before[way]) / asked * 1000
            found.append(value(row, f"{label}, {way}, the hub's processor time a request", "ms", [cost]))
    return found

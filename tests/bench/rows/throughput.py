"""Tokens a second of 8 streams through the hub, against the bare worker."""

from __future__ import annotations

import json
from typing import Any, Final

from tests.bench.figure import Budget, Figure, pairs, value
from tests.bench.rig import CHAT, NAME, SLOTS, BenchHub, Context, bare_worker, cpu_s, scripted_python

WARM_S: Final = 0.8
WINDOW_S: Final = 2.5
_TOPICS: Final = ("a lighthouse", "bread", "rain", "a long road", "bees", "an old clock", "snow", "the sea")


def bodies(max_tokens: int = 400) -> list[str]:
    """One request per stream, each with a prompt of its own. To the worker they go as they are."""
    return [
        json.dumps(
            {
                "model": NAME,
                "messages": [{"role": "user", "content": f"Tell a very long story about {topic}."}],
                "max_tokens": max_tokens,
                "temperature": 0,
                "seed": number,
                "stream": True,
            }
        )
        for number, topic in enumerate(_TOPICS)
    ]


def real(context: Context) -> list[Figure]:
    """The row of the design: TLS, key and journal against the worker alone."""
    model = context.need_model()
    bare_rates, hub_rates, costs = [], [], []
    with bare_worker(model) as bare, BenchHub(tls=True) as hub:
        hub.serve(model)
        for target in (bare, hub.target()):  # prompts are in the engines' caches from now on
            _run(context, target, warm_s=4.0, window_s=0.5)
        for number in range(context.pairs):
            if number % 2:  # A B, B A: what comes second may find the machine in another state
                bare_rates.append(_run(context, bare)["rate"])
            before = cpu_s(hub.pid)
            through = _run(context, hub.target())
            costs.append((cpu_s(hub.pid) - before) / through["tokens"] * 1e6)
            hub_rates.append(through["rate"])
            if not number % 2:
                bare_rates.append(_run(context, bare)["rate"])
            context.note(f"pair {number + 1}: {bare_rates[-1]:.1f} bare, {hub_rates[-1]:.1f} through the hub")
    return [
        pairs(
            "streams",
            f"{SLOTS} streams through TLS, key and journal",
            "tokens/s",
            "ratio",
            bare_rates,
            hub_rates,
            against="the bare worker",
            budget=Budget(0.97, at_least=True),
            digits=3,
        ),
        value("streams", "the hub's processor time a token", "µs", costs, digits=0),
    ]


def paced(context: Context) -> list[Figure]:
    """The hub's own cost of a token, at 200 a second and stream from the scripted engine."""
    model = context.need_model()
    found = []
    with scripted_python() as python:
        for tls in (False, True):
            costs, rates = [], []
            with BenchHub(tls=tls, engine=python) as hub:
                hub.serve(model, "paced")
                for _ in range(context.pairs):
                    before = cpu_s(hub.pid)
                    reply = _run(context, hub.target(), warm_s=0.3, window_s=1.0, name="paced")
                    costs.append((cpu_s(hub.pid) - before) / reply["tokens"] * 1e6)
                    rates.append(reply["rate"])
            way = "TLS" if tls else "plain HTTP"
            label = f"scripted engine, {SLOTS} streams, {way}: the hub's processor time a token"
            found.append(value("paced", label, "µs", costs, digits=0))
            found.append(value("paced", f"… at {8 * 200} offered, delivered", "tokens/s", rates, digits=0))
    return found


def _run(
    context: Context,
    target: dict[str, Any],
    warm_s: float = WARM_S,
    window_s: float = WINDOW_S,
    name: str = NAME,
) -> dict[str, Any]:
    asked = [body.replace(f'"{NAME}"', f'"{name}"', 1) for body in bodies()]
    return context.load("streams", target=target, path=CHAT, bodies=asked, warm_s=warm_s, window_s=window_s)

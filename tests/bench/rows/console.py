"""What an open console costs its node: what it adds to a request, and to an idle node's processor time."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import Final

from tests.bench.crowded import REQUESTS, Crowd, CrowdHub
from tests.bench.figure import Budget, Figure, pairs
from tests.bench.rig import CHAT, NAME, Context, scripted_python
from tests.bench.stats import percentile
from tests.bench.terminal import Terminal

WINDOW_S: Final = 4.0
EVERY_S: Final = 0.011
SETTLE_S: Final = 1.0
IDLE_S: Final = 5.0
ALONE: Final = "no console"
EMBEDDED: Final = {"embedded, 2 Hz": 6.0, "embedded, 4 Hz": 9.0}
ATTACHED: Final = {"attached, 2 Hz": 0.3, "attached, 4 Hz": None}
_BODY: Final = json.dumps(
    {"model": NAME, "messages": [{"role": "user", "content": "Tell a story about rain."}], "max_tokens": 16}
)

Found = dict[str, list[float]]


def latency(context: Context) -> list[Figure]:
    """A request's time with 500 rows live: no console, one in the same process, one attached."""
    model = context.need_model()
    took: dict[str, list[list[float]]] = {name: [] for name in (ALONE, *EMBEDDED, *ATTACHED)}
    with scripted_python() as python, ExitStack() as stack:
        crowd = stack.enter_context(Crowd())
        headless = stack.enter_context(CrowdHub(python)).ready(model)
        embedded = stack.enter_context(CrowdHub(python, embedded=True)).ready(model)
        embedded.terminal.press(REQUESTS)
        for number in range(context.pairs):
            parts = [(_headless, headless), (_embedded, embedded)]
            for part, hub in parts if number % 2 else reversed(parts):
                with crowd.at(hub):
                    found = part(crowd, hub)
                for name, values in found.items():
                    took[name].append(values)
            context.note(f"pair {number + 1}, p99: {_p99(took)}")
    return [figure for name in (*EMBEDDED, *ATTACHED) for figure in _compared(took, name)]


def _headless(crowd: Crowd, hub: CrowdHub) -> Found:
    found = {ALONE: _tap(crowd, hub)}
    with Terminal(hub.environment, "--attach", str(hub.socket)) as terminal:
        terminal.wait_for("no alerts")
        terminal.press(REQUESTS)
        return found | dict(zip(ATTACHED, _both_rates(crowd, hub, terminal), strict=True))


def _embedded(crowd: Crowd, hub: CrowdHub) -> Found:
    return dict(zip(EMBEDDED, _both_rates(crowd, hub, hub.terminal), strict=True))


def _both_rates(crowd: Crowd, hub: CrowdHub, terminal: Terminal) -> tuple[list[float], list[float]]:
    slow = _tap(crowd, hub)
    terminal.press("+")
    fast = _tap(crowd, hub)
    terminal.press("-")
    return slow, fast


def _tap(crowd: Crowd, hub: CrowdHub) -> list[float]:
    time.sleep(SETTLE_S)
    plan = {"target": hub.target(), "path": CHAT, "body": _BODY, "every_s": EVERY_S, "window_s": WINDOW_S}
    values: list[float] = crowd("tap", **plan)["ms"]
    return values


def _p99(took: dict[str, list[list[float]]]) -> str:
    return ", ".join(f"{name} {percentile(rounds[-1], 0.99):.2f}" for name, rounds in took.items())


def _compared(took: dict[str, list[list[float]]], name: str) -> list[Figure]:
    found = []
    for share in (0.5, 0.99):
        limit = ATTACHED.get(name, EMBEDDED.get(name) if share == 0.99 else None)
        baseline, measured = ([percentile(each, share) for each in took[way]] for way in (ALONE, name))
        label = f"a request with 500 rows live, {name}, p{share * 100:.0f}"
        budget = Budget(limit) if limit is not None else None
        found.append(
            pairs("console", label, "ms", "added", baseline, measured, against="no console", budget=budget)
        )
    return found

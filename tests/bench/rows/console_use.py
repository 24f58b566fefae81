"""How long an open console holds up the loop it shares with the node, and how long people wait for it."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterable
from typing import Final

from relaydesk.surfaces.console import registry
from relaydesk.surfaces.console.themes import DARK
from tests.bench.crowded import REQUESTS, Crowd, CrowdHub, Stalls
from tests.bench.figure import Budget, Figure, pairs, value
from tests.bench.rig import BenchHub, Context, scripted_python, temporary
from tests.bench.stats import percentile
from tests.bench.terminal import SIZE, Terminal, run_s

STEADY_S: Final = 4.0
# Long enough for what a key starts, and for the picture after it.
ACT_S: Final = 0.6
IDLE_S: Final = 5.0
KEYS: Final = 60
# Not in step with the pictures.
KEY_EVERY_S: Final = 0.073
PANES: Final = "".join(str(spec.digit) for spec in registry.PANES)
ALONE: Final = "no console"
SMALL: Final = (80, 24)
STEADY_MS: Final = 15.0
ONCE_MS: Final = 60.0
KEY_MS: Final = 50.0
PAINT_MS: Final = 600.0
IDLE_PER_MILLE: Final = 10.0

# The cursor's ground (`surfaces/console/themes.py`), and where the terminal is told to write.
_CURSOR: Final = "38;2;" + ";".join(str(part) for part in bytes.fromhex(DARK.cursor[1:]))
_MOVE: Final = re.compile(r"\x1b\[(\d+);\d+H")

Both = tuple[float, float]


def stalls(context: Context) -> list[Figure]:
    """The longest turn of the loop with 500 rows live: all the time, and while something is opened."""
    model = context.need_model()
    found: dict[str, list[Both]] = {}
    with scripted_python() as python, Crowd() as crowd:
        for number in range(context.pairs):
            with CrowdHub(python, probed=True) as headless:
                headless.ready(model)
                with crowd.at(headless):
                    time.sleep(ACT_S)
                    _add(found, ALONE, _worst(headless.stalls, lambda: time.sleep(STEADY_S)))
            with CrowdHub(python, embedded=True, probed=True) as hub:
                hub.ready(model)
                with crowd.at(hub):
                    for name, worst in _seen(hub):
                        _add(found, name, worst)
            context.note(f"round {number + 1}: " + _said(found))
    return [figure for name, worst in found.items() for figure in _longest(name, worst)]


def _seen(hub: CrowdHub) -> Iterable[tuple[str, Both]]:
    stalls, terminal = hub.stalls, hub.terminal
    for key in PANES[1:]:
        yield "a pane is opened for the first time", _worst(stalls, lambda key=key: _act(terminal, key))
    for key in PANES:
        yield "another pane is shown", _worst(stalls, lambda key=key: _act(terminal, key))
    _act(terminal, REQUESTS)
    yield "steady, 2 Hz", _worst(stalls, lambda: time.sleep(STEADY_S))
    _act(terminal, "+")
    yield "steady, 4 Hz", _worst(stalls, lambda: time.sleep(STEADY_S))
    _act(terminal, "-")
    for key, name in (("?", "Help"), (":", "the palette")):
        for first in (True, False):
            yield (
                f"{name} is opened{' for the first time' if first else ''}",
                _worst(stalls, lambda key=key: _act(terminal, key)),
            )
            _act(terminal, "\x1b")
    for size in (SMALL, SIZE):
        terminal.resize(*size)
        yield "resized", _worst(stalls, lambda size=size: _resize(terminal, size))


def keys(context: Context) -> list[Figure]:
    """From a key to its effect on the screen, with 500 rows live at 2 Hz: the cursor moves a line."""
    model = context.need_model()
    middle, tail = [], []
    with scripted_python() as python, Crowd() as crowd, CrowdHub(python, embedded=True) as hub:
        hub.ready(model)
        _act(hub.terminal, REQUESTS)
        with crowd.at(hub):
            # In the middle of the list and of the screen the cursor's line stays where it is while rows go.
            for key in ("\x1b[6~", "\x1b[6~", *"kkkkkkkkkk"):
                _act(hub.terminal, key, 0.1)
            for _ in range(context.pairs):
                took = _moves(hub.terminal)
                middle.append(percentile(took, 0.5))
                tail.append(percentile(took, 0.95))
    label = "from a key to the cursor on another line"
    return [
        value("console-keys", f"{label}, p50", "ms", middle, digits=1),
        value("console-keys", f"{label}, p95 of {KEYS}", "ms", tail, budget=Budget(KEY_MS), digits=1),
    ]


def paint(context: Context) -> list[Figure]:
    """From the command to the first picture, and to one with a node in it."""
    first, embedded, attached = [], [], []
    with BenchHub() as running:
        for _ in range(context.pairs):
            with temporary() as directory, Terminal(BenchHub(directory).environment) as terminal:
                first.append(_since_start(terminal, "Waiting for the node"))
                embedded.append(_since_start(terminal, "no alerts"))
            with Terminal(running.environment) as terminal:
                attached.append(_since_start(terminal, "no alerts"))
    budget = Budget(PAINT_MS)
    return [
        value("console-paint", "from the command to the first picture", "ms", first, budget=budget, digits=0),
        value("console-paint", "… to that of a node started in it", "ms", embedded, digits=0),
        value("console-paint", "… to that of a running node", "ms", attached, digits=0),
    ]


def idle(context: Context) -> list[Figure]:
    """Processor time of a node that nobody asks, without a console and inside one."""
    model = context.need_model()
    alone, inside = [], []
    with scripted_python() as python, CrowdHub(python) as headless:
        headless.ready(model)
        with CrowdHub(python, embedded=True) as hub:
            hub.ready(model)
            for _ in range(context.pairs):
                alone.append(_share(headless.pid))
                inside.append(_share(hub.pid))
    name = "an open console and its node, nobody asks: processor time"
    unit = "‰ of a core"
    budget = Budget(IDLE_PER_MILLE)
    return [
        value("console-idle", name, unit, inside, budget=budget, digits=1),
        pairs(
            "console-idle", "… of it the console", unit, "added", alone, inside, against="headless", digits=1
        ),
    ]


def _since_start(terminal: Terminal, text: str) -> float:
    return (terminal.wait_for(text) - terminal.started) * 1000


def _share(pid: int) -> float:
    """Thousandths of a core over `IDLE_S`; counted in nanoseconds, thread by thread."""
    before, started = run_s(pid), time.perf_counter()
    time.sleep(IDLE_S)
    return (run_s(pid) - before) / (time.perf_counter() - started) * 1000


def _worst(stalls: Stalls, act: Callable[[], None]) -> Both:
    stalls.reset()
    act()
    return stalls.read()


def _act(terminal: Terminal, key: str, wait_s: float = ACT_S) -> None:
    terminal.press(key)
    time.sleep(wait_s)


def _resize(terminal: Terminal, size: tuple[int, int]) -> None:
    terminal.resize(*size)
    time.sleep(ACT_S)


def _moves(terminal: Terminal) -> list[float]:
    """Down and up by turns; milliseconds from each key to the cursor on another line."""
    took = []
    terminal.press("j")
    terminal.wait(lambda printed: cursor_line(printed) > 0)
    time.sleep(ACT_S)
    line = 0
    for key in itertools.islice(itertools.cycle("kj"), KEYS):
        time.sleep(KEY_EVERY_S)
        line = terminal.seen(cursor_line) or line
        pressed = terminal.press(key)
        shown = terminal.wait(lambda printed, line=line: cursor_line(printed) not in (0, line))
        took.append((shown - pressed) * 1000)
        line = terminal.seen(cursor_line)
    return took


def cursor_line(printed: str) -> int:
    """The screen line on which the cursor was drawn last, 0 where it was not."""
    at = printed.rfind(_CURSOR)
    moves = list(_MOVE.finditer(printed, 0, at)) if at >= 0 else []
    return int(moves[-1][1]) if moves else 0


def _add(found: dict[str, list[Both]], name: str, worst: Both) -> None:
    found.setdefault(name, []).append(worst)


def _said(found: dict[str, list[Both]]) -> str:
    return ", ".join(f"{name} {worst[-1][0]:.1f} ({worst[-1][1]:.1f})" for name, worst in found.items())


def _longest(name: str, worst: list[Both]) -> list[Figure]:
    """How long a timer waited, which others on the machine make longer; and what of it the loop worked."""
    limit = None if name == ALONE else STEADY_MS if name.startswith("steady") else ONCE_MS
    budget = Budget(limit) if limit is not None else None
    label = f"the longest turn with 500 rows live, {name}"
    return [
        value("console-stalls", label, "ms", [wait for wait, _ in worst], budget=budget, digits=1),
        value("console-stalls", "… processor time", "ms", [work for _, work in worst], digits=1),
    ]

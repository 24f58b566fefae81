"""A stage for the console: the node's real frame (projector, watch hub, dispatcher) over values a test sets.

`Desk` is such a node; `ControlServer` can stand before it. `screen_text` is what a terminal shows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.app import App
from textual.message_pump import MessagePump
from textual.pilot import Pilot

from relaydesk.core.commands import Command, Outcome
from relaydesk.core.errors import FaultError
from relaydesk.core.events import Event
from relaydesk.core.text import safe_text
from relaydesk.core.view.hopcheck import HopCheckView
from relaydesk.core.view.ledger import LedgerView
from relaydesk.core.view.network import HopsView, NetworkView, RelaysView
from relaydesk.core.view.node_view import WorkersView
from relaydesk.core.view.sections import (
    Alert,
    AlertsView,
    HealthView,
    JobsView,
    KeysView,
    KeyView,
    LogLine,
    LogView,
    MemoryView,
    MetaView,
    ModelsView,
    ModelView,
    RequestsView,
    RequestView,
    WorkerView,
)
from relaydesk.engine.bus import Bus
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.local import LocalNode
from relaydesk.engine.projector import Projector
from relaydesk.engine.tasks import cancel_and_wait
from relaydesk.engine.watch import WatchHub
from relaydesk.node_api import NodeApi
from relaydesk.surfaces.console.app import ConsoleApp
from relaydesk.surfaces.console.session import Session
from tests.support.clock import FakeClock

# 2026-03-14 15:09:26 UTC; `conftest` sets the time zone.
NOW_MS = 1_773_500_966_000


@dataclass(frozen=True)
class Changed(Event):
    """Any section, at once."""

    notable: ClassVar[bool] = True
    section: str = ""  # type: ignore[misc]


class Desk:
    """A node whose sections are what a test says. A `FaultError` in place of a value fails the section."""

    def __init__(self) -> None:
        self.clock = FakeClock(NOW_MS)
        self.bus = Bus()
        self.values: dict[str, Any] = sample()
        self.sent: list[Command] = []
        self.hub: WatchHub
        self.dispatcher = Dispatcher()
        self.start()

    def start(self) -> None:
        """(Again) a running node."""
        projector = Projector(self.clock, {name: lambda name=name: self._value(name) for name in self.values})
        self.hub = WatchHub(self.bus, projector)
        self.node = LocalNode(projector, self.hub, self.dispatcher)
        self._task = asyncio.create_task(self.hub.run())

    def set(self, **values: Any) -> None:
        """Replace sections by name."""
        self.values |= values
        for name in values:
            self.bus.publish(Changed(name))

    def answer(self, kind: type[Command], outcome: Outcome) -> None:
        """What a command comes to; those sent are kept in ``sent``."""

        async def handle(command: Command) -> Outcome:
            self.sent.append(command)
            return outcome

        self.dispatcher.on(kind, handle)

    async def stop(self) -> None:
        """Close every watch with ``stopped``."""
        await cancel_and_wait(self._task)

    def _value(self, name: str) -> Any:
        value = self.values[name]
        if isinstance(value, FaultError):
            raise value
        return value


def sample() -> dict[str, Any]:
    """A node that has been in use for some hours."""
    return {
        "meta": MetaView(
            "5f2d7c0e9a41b3d8",
            "0.1.0",
            4711,
            NOW_MS - 11_520_000,
            "ready",
            ("https://localhost:8383", "https://attic:8383"),
            "7A:1F:" + ":".join(["C0"] * 30),
            "/home/ada/.local/state/relaydesk/tls/ca.pem",
            "/home/ada/.local/state/relaydesk",
        ),
        "models": ModelsView(MemoryView("ram", 15_800, 9_214), _models()),
        "workers": WorkersView(
            (WorkerView("smollm2", "xllamacpp", "ready", "", 4720, 243, 4, 2, NOW_MS - 600_000),)
        ),
        "requests": RequestsView(_in_flight(), _recent()),
        "keys": KeysView((KeyView("default", "1b9e4f07", "generated", NOW_MS - 86_400_000),)),
        "health": HealthView(2, 1, 41.7, 0.4, 1.3, 6.0, 84, 128, 40_213),
        "log": LogView(_log()),
        "alerts": AlertsView(
            (
                Alert(
                    "service_failed",
                    "warning",
                    safe_text("certificates failed: the disk is full"),
                    safe_text("make room; it is tried again in 60 s"),
                    NOW_MS - 90_000,
                ),
            )
        ),
        "jobs": JobsView(),
        "network": NetworkView(),
        "relays": RelaysView(),
        "hops": HopsView(),
        "hopcheck": HopCheckView(),
        "ledger": LedgerView(),
    }


def _models() -> tuple[ModelView, ...]:
    return (
        ModelView(
            name="smollm2",
            state="warm",
            fits=True,
            fit_reason=safe_text("fits: needs 243 MiB of 9214 MiB free"),
            placement="host",
            context_length=2048,
            slots=4,
            in_flight=2,
            queued=1,
            need_mib=243,
            measured=True,
            size_bytes=98_362_432,
            quantization=safe_text("Q4_1"),
            architecture=safe_text("llama"),
        ),
        ModelView(
            name="qwen3-32b",
            state="unavailable",
            fits=False,
            fit_reason=safe_text("needs 21840 MiB, and 15800 MiB is all there is"),
            placement="",
            context_length=8192,
            slots=1,
            need_mib=21_840,
            size_bytes=19_762_149_376,
            quantization=safe_text("Q4_K_M"),
            architecture=safe_text("qwen3"),
        ),
    )


def _in_flight() -> tuple[RequestView, ...]:
    return (
        RequestView(
            "req_01hq7", "smollm2", "default", "/v1/chat/completions", True, "generating", NOW_MS - 2_400,
            queue_ms=3, load_ms=0, first_token_ms=212, prompt_tokens=91, prompt_done=91,
            completion_tokens=46, tokens_per_s=20.9,
        ),
        RequestView(
            "req_01hq8", "smollm2", "default", "/api/chat", True, "prefill", NOW_MS - 300,
            queue_ms=1, load_ms=0, prompt_tokens=1840, prompt_done=512,
        ),
    )  # fmt: skip


def _recent() -> tuple[RequestView, ...]:
    return (
        RequestView(
            "req_01hq6", "smollm2", "default", "/v1/chat/completions", True, "done", NOW_MS - 61_000,
            queue_ms=2, load_ms=1_930, first_token_ms=2_204, total_ms=4_870, prompt_tokens=40, prompt_done=40,
            completion_tokens=64, tokens_per_s=24.0, finish_reasons=("stop",), status=200,
        ),
    )  # fmt: skip


def _log() -> tuple[LogLine, ...]:
    said = (
        ("info", "engine.node", "node 5f2d7c0e9a41b3d8 is ready"),
        ("info", "surfaces.host", "listening on https://localhost:8383"),
        ("info", "engine.pool", "smollm2 is loading: 243 MiB of 9457 MiB free"),
        ("info", "engine.pool", "smollm2 is warm after 1.9 s"),
        ("warning", "engine.tls", "a client asked for the unknown name attic.local"),
        ("error", "engine.supervisor", "certificates failed: the disk is full"),
        ("info", "engine.pool", "日本語モデル was registered"),
    )
    return tuple(
        LogLine(NOW_MS - 60_000 + 7_000 * at, level, source, safe_text(text))
        for at, (level, source, text) in enumerate(said)
    )


Connect = Callable[[], Awaitable[NodeApi]]


@asynccontextmanager
async def console(
    desk: Desk, size: tuple[int, int] = (80, 24), *, connect: Connect | None = None, **given: Any
) -> AsyncIterator[tuple[ConsoleApp, Pilot[None]]]:
    """A console on the desk's node, with its first view shown."""

    async def local() -> NodeApi:
        return desk.node.read_only() if given.get("read_only") else desk.node

    app = ConsoleApp(Session(connect or local, desk.clock, **given))
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: app.feed.link.state == "live" and app.feed.shown.meta.value is not None)
        yield app, pilot


async def until(pilot: Pilot[None], true: Callable[[], bool], timeout_s: float = 5.0) -> None:
    """Wait until something holds and the screen has been drawn since."""
    async with asyncio.timeout(timeout_s):
        while not true():
            await asyncio.sleep(0.01)
    await pilot.pause()


async def drained(app: App[Any], limit_s: float = 1.0) -> None:
    """Wait until every widget has handled all its messages, and draw what they changed.

    In place of Textual's own waiting, which takes a process that is quiet for 20 ms for one that is done: it
    costs 40 ms a key, and takes one that gets no processor time for done, too.
    """
    end = time.monotonic() + limit_s
    drawn = False
    while not drawn and time.monotonic() < end:
        quiet = 0
        while quiet < _QUIET_TURNS and time.monotonic() < end:
            await asyncio.sleep(0)
            quiet = 0 if _busy(app) else quiet + 1
        # Laying out sets off messages again.
        app.screen._on_timer_update()
        drawn = not _busy(app)


# What one message sets off may need some turns of the loop before it is a message itself.
_QUIET_TURNS = 12


def _busy(app: App[Any]) -> bool:
    pumps = [app, *(each for screen in app.screen_stack for each in screen.walk_children(with_self=True))]
    # A new size is passed on after a moment, by a timer.
    return app._resize_timer is not None or any(pump._running and not _idle(pump) for pump in pumps)


def _idle(pump: MessagePump) -> bool:
    """Whether it waits for a message: one that handles one waits for something else."""
    queue = pump._message_queue
    return queue.empty() and bool(queue.ready_event._waiters) and not pump._next_callbacks  # type: ignore[attr-defined]


async def refreshed(app: ConsoleApp, pilot: Pilot[None]) -> None:
    """Let what a desk was told reach the screen."""
    await asyncio.sleep(0.1)
    app.feed.hurry()
    await pilot.pause()


async def settled(app: ConsoleApp, pilot: Pilot[None]) -> str:
    """Wait until the screen stands still; its text."""
    text, still = "", 0
    async with asyncio.timeout(5):
        while still < 3:
            await drained(app)
            await pilot.pause(0.01)
            before, text = text, screen_text(app)
            still = still + 1 if text == before else 0
    return text


def screen_lines(app: ConsoleApp) -> list[str]:
    """The screen, line by line, without trailing blanks."""
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


def screen_text(app: ConsoleApp) -> str:
    """The screen as one text."""
    return "\n".join(screen_lines(app)) + "\n"

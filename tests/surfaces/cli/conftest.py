"""A real control server over a `LocalNode` of small parts, and the command line run against it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.codec import to_builtins
from relaydesk.core.commands import COMMANDS, CancelJob, Command, Outcome
from relaydesk.core.view.network import NetworkView, RelaysView
from relaydesk.core.view.node_view import WorkersView
from relaydesk.core.view.sections import (
    AlertsView,
    HealthView,
    KeysView,
    LogView,
    MemoryView,
    MetaView,
    ModelsView,
    RequestsView,
)
from relaydesk.engine.bus import Bus
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.jobs import JobBoard
from relaydesk.engine.local import LocalNode
from relaydesk.engine.projector import Projector
from relaydesk.engine.tasks import cancel_and_wait, spawn
from relaydesk.engine.watch import WatchHub
from relaydesk.surfaces.cli.main import run
from relaydesk.surfaces.control.server import ControlServer


@dataclass
class NodeInThread:
    """A node whose views and answers a test sets; ``seen`` has every command it got."""

    socket: Path
    views: dict[str, Any]
    answers: dict[type[Command], Callable[[Any], Awaitable[Outcome]]] = field(default_factory=dict)
    seen: list[Command] = field(default_factory=list)
    jobs: JobBoard = field(init=False)
    _ready: threading.Event = field(default_factory=threading.Event)
    _loop: asyncio.AbstractEventLoop | None = None
    _stop: asyncio.Event | None = None
    _thread: threading.Thread | None = None

    def answer(self, kind: type[Command], value: Any) -> None:
        """Let a command succeed with ``value``."""

        async def done(_command: Command) -> Outcome:
            return Outcome(ok=True, value=to_builtins(value))

        self.answers[kind] = done

    def start(self) -> None:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    def stop(self) -> None:
        """Close the server, as a node that ends; twice does no harm."""
        if self._thread is not None and self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)
            assert not self._thread.is_alive()
            self._thread = None

    async def _main(self) -> None:
        clock, bus = SystemClock(), Bus()
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self.jobs = JobBoard(clock, SystemRng(), bus)
        providers = {name: (lambda name=name: self.views[name]) for name in self.views}
        projector = Projector(clock, {**providers, "jobs": self.jobs.view})
        hub, dispatcher = WatchHub(bus, projector), Dispatcher()
        for kind in COMMANDS.values():
            dispatcher.on(kind, self._take)
        server = ControlServer(LocalNode(projector, hub, dispatcher), self.socket, clock)
        await server.start()
        feeding = spawn(hub.run(), name="watch")
        self._ready.set()
        await self._stop.wait()
        await cancel_and_wait(feeding)
        await server.close()
        await self.jobs.close()

    async def _take(self, command: Command) -> Outcome:
        self.seen.append(command)
        if isinstance(command, CancelJob):
            await self.jobs.cancel(command.id)
            return Outcome(ok=True)
        if type(command) not in self.answers:
            return Outcome(ok=True)
        return await self.answers[type(command)](command)


@dataclass(frozen=True)
class Result:
    """What one run of the command line left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The object on the last line of stdout."""
        return json.loads(self.out.rstrip("\n").rpartition("\n")[2])


Cli = Callable[..., Result]


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory and home of the test's own, and no setting from outside."""
    import os

    for name in os.environ:
        if name.startswith("RELAY_"):
            monkeypatch.delenv(name)
    state = tmp_path / "state"
    monkeypatch.setenv("RELAY_STATE_DIR", str(state))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("relaydesk.config.paths.SYSTEM_RUNTIME", tmp_path / "system")
    return state


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run the command line in this process."""

    def call(*args: str | Path) -> Result:
        capsys.readouterr()
        code = run(["relaydesk", *map(str, args)])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def node(state_dir: Path) -> Iterator[NodeInThread]:
    """A running node where the start rule looks first."""
    state_dir.mkdir(mode=0o700)
    views = {
        "meta": MetaView(
            node="shed",
            version="0.1.0",
            pid=4711,
            started_at_ms=SystemClock().wall_ms() - 3_723_000,
            phase="ready",
            listening=("https://0.0.0.0:8383",),
            fingerprint="AB:CD:EF",
            ca_path="/state/tls/ca.pem",
        ),
        "models": ModelsView(MemoryView("ram", 16_000, 9_000)),
        "workers": WorkersView(),
        "requests": RequestsView(),
        "keys": KeysView(),
        "health": HealthView(),
        "log": LogView(),
        "alerts": AlertsView(),
        "network": NetworkView(),
        "relays": RelaysView(),
    }
    running = NodeInThread(state_dir / "control.sock", views)
    running.start()
    yield running
    running.stop()

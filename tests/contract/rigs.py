"""Three nodes that tell the same story: in this process, behind a control socket, and as a recording."""

from __future__ import annotations

import asyncio
import io
from abc import ABC, abstractmethod
from pathlib import Path

from relaydesk.core.commands import Access, FitModel, LoadModel, Outcome, ShowDefaultKey
from relaydesk.core.events import KeysChanged
from relaydesk.core.text import safe_text
from relaydesk.core.view.hopcheck import HopCheckView
from relaydesk.core.view.ledger import LedgerView
from relaydesk.core.view.network import HopsView, NetworkView, RelaysView
from relaydesk.core.view.node_view import WorkersView
from relaydesk.core.view.sections import (
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
    RequestsView,
)
from relaydesk.engine.bus import Bus
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.local import LocalNode
from relaydesk.engine.projector import Projector
from relaydesk.engine.tasks import cancel_and_wait
from relaydesk.engine.watch import WatchHub
from relaydesk.node_api import NodeApi
from relaydesk.scripted import Recorder, ScriptedNode, read_recording
from relaydesk.surfaces.control.client import RemoteNode
from relaydesk.surfaces.control.server import ControlServer
from tests.support.clock import FakeClock

SECRET = "sk-5f2d7c0e9a"
HOSTILE = (
    "\x1b]52;c;aGk=\x07clip",
    "\x1b[2Jclear",
    "user\u202egpj.exe",
    "zero\u200bwidth",
    "[@click=app.quit]x[/]",
    "[/oops]",
    "two\r\nlines",
    "\ud800lone",
    "日本語 ✓ é",
    "x" * 5000,
)


class LiveNode:
    """The real frame over a few services' state, of which one holds a secret."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.bus = Bus()
        self.secrets = [SECRET]
        # Big enough that a few updates fill every buffer on the way of a watcher that does not read.
        text = safe_text("y" * 1000, 1000)
        self.lines = [LogLine(1, "info", "peer", safe_text(hostile, 1000)) for hostile in HOSTILE]
        self.lines += [LogLine(2, "info", "bulk", text)] * 490
        projector = Projector(
            self.clock,
            {
                "meta": lambda: MetaView("desk", "0.1.0", 7, self.clock.wall_ms(), "ready"),
                "models": lambda: ModelsView(MemoryView("ram", 100, 50)),
                "workers": WorkersView,
                "requests": RequestsView,
                "keys": self._keys,
                "health": HealthView,
                "log": lambda: LogView(tuple(self.lines)),
                "alerts": AlertsView,
                "jobs": JobsView,
                "network": NetworkView,
                "relays": RelaysView,
                "hops": HopsView,
                "ledger": LedgerView,
                "hopcheck": HopCheckView,
            },
        )
        self.hub = WatchHub(self.bus, projector)
        dispatcher = Dispatcher()
        dispatcher.on(LoadModel, self._load)
        dispatcher.on(FitModel, self._fit)
        dispatcher.on(ShowDefaultKey, self._show)
        self.loaded: list[str] = []
        self.node = LocalNode(projector, self.hub, dispatcher)
        self._task = asyncio.create_task(self.hub.run())

    def change(self) -> None:
        """One more key, and a log line that tells of it: two sections change."""
        self.secrets.append(SECRET + str(len(self.secrets)))
        self.lines = [*self.lines[1:], LogLine(3, "info", "keys", safe_text("a key was made"))]
        for event in (KeysChanged(), _LogGrew()):
            self.bus.publish(event)

    async def stop(self) -> None:
        await cancel_and_wait(self._task)

    def _keys(self) -> KeysView:
        return KeysView(
            tuple(KeyView(f"key{number}", "0badc0de", "file") for number in range(len(self.secrets)))
        )

    async def _load(self, command: LoadModel) -> Outcome:
        self.loaded.append(command.name)
        return Outcome(ok=True, job="job_1")

    async def _fit(self, command: FitModel) -> Outcome:
        return Outcome(ok=True, value={"name": command.name, "fits": True})

    async def _show(self, command: ShowDefaultKey) -> Outcome:
        return Outcome(ok=True, value={"key": self.secrets[0]})


class _LogGrew(KeysChanged):
    section = "log"


class Rig(ABC):
    """One implementation of `NodeApi` with handles to make things happen to it."""

    node: NodeApi
    reader: NodeApi
    # A recording can do nothing; the others carry out what has a handler.
    acts: bool = True

    @abstractmethod
    async def start(self, directory: Path) -> None: ...

    @abstractmethod
    async def change(self) -> None:
        """Let one more key appear."""

    async def flood(self, count: int) -> None:
        """Let ``count`` changes happen, each an update of its own."""
        for _ in range(count):
            await self.change()
            await asyncio.sleep(0.06)  # the hub's own pause between two sends

    @abstractmethod
    async def stop(self) -> None:
        """The node ends in good order."""

    @abstractmethod
    async def close(self) -> None: ...


class LocalRig(Rig):
    async def start(self, directory: Path) -> None:
        self.live = LiveNode()
        self.node = self.live.node
        self.reader = self.live.node.read_only()

    async def change(self) -> None:
        self.live.change()

    async def stop(self) -> None:
        await self.live.stop()

    async def close(self) -> None:
        await self.live.stop()


class RemoteRig(LocalRig):
    async def start(self, directory: Path) -> None:
        self.live = LiveNode()
        path = directory / "control.sock"
        self.server = ControlServer(self.live.node, path, self.live.clock)
        await self.server.start()
        self.node = self._remote = RemoteNode(path)
        self.reader = self._remote_reader = RemoteNode(path, Access.READ)

    async def close(self) -> None:
        await self._remote.close()
        await self._remote_reader.close()
        await self.server.close()
        await self.live.stop()


class ScriptedRig(Rig):
    acts = False
    CHANGES = 12
    # Made once, by a real recorder of a real node; replayed by every test.
    recording = b""

    async def start(self, directory: Path) -> None:
        if not ScriptedRig.recording:
            ScriptedRig.recording = await self._recorded()
        frames = read_recording(ScriptedRig.recording.splitlines())
        assert len(frames) == 1 + self.CHANGES
        self._clock = FakeClock()
        self._scripted = ScriptedNode(frames, self._clock, sleep=self._clock.sleep)
        self.node = self._scripted
        self.reader = ScriptedNode(frames, self._clock, access=Access.READ)

    async def _recorded(self) -> bytes:
        """A live node's story, one change a second."""
        live = LiveNode()
        file = io.BytesIO()
        recorder = asyncio.create_task(Recorder(file, live.clock).record(live.node.watch()))
        for _ in range(self.CHANGES):
            await asyncio.sleep(0.06)
            live.clock.advance(1)
            live.change()
        await asyncio.sleep(0.06)
        await live.stop()
        await recorder
        return file.getvalue()

    async def change(self) -> None:
        self._clock.advance(1)

    async def flood(self, count: int) -> None:
        self._clock.advance(count)

    async def stop(self) -> None:
        self._scripted.stop()

    async def close(self) -> None:
        self._scripted.stop()

"""Registry, pool, gateway and public application for real, in one loop, over scripted engines."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
from aiohttp import web

from relaydesk.core.access.exposure import Exposure
from relaydesk.core.events import Event
from relaydesk.core.pool.model import ModelSpec
from relaydesk.engine.access.audit import Audit
from relaydesk.engine.access.key_ring import KeyRing
from relaydesk.engine.access.keys import Authenticator
from relaydesk.engine.access.quotas import Quotas
from relaydesk.engine.bus import Bus
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.gateway.journal import Journal
from relaydesk.engine.gateway.network_lease import Network
from relaydesk.engine.gateway.service import Gateway
from relaydesk.engine.pool.facts import model_facts
from relaydesk.engine.pool.limits import Limits
from relaydesk.engine.pool.pool import Pool
from relaydesk.engine.pool.registry import Entry, Registry
from relaydesk.engine.pool.views import models_view
from relaydesk.store.audit import AuditLog
from relaydesk.store.db import Database
from relaydesk.store.keys import KeysRepo
from relaydesk.store.measured import MeasuredRepo
from relaydesk.store.models import ModelsRepo
from relaydesk.store.secrets import FileSecrets
from relaydesk.store.usage import UsageRepo
from relaydesk.store.usage_log import UsageLog
from relaydesk.surfaces.public.app import make_app
from relaydesk.surfaces.public.state import Hub
from tests.support import gguf_builder
from tests.support.scripted_engine import ScriptedStarter

KEY = "k-0123456789abcdef"
MIB = 1 << 20


class ScriptedHub:
    """A hub without processes. A context manager; ``starter`` has the engines, ``limits`` may be replaced.

    ``memory_mib`` is the machine's pretended memory: a model of `add` needs `NEED_MIB` of it.
    """

    def __init__(
        self,
        directory: Path,
        *,
        memory_mib: int | None = 10_000,
        max_body: int = 8 * MIB,
        exposure: Exposure | None = None,
    ) -> None:
        self.dir = directory
        self.clock = SystemClock()
        self.bus = Bus()
        self.events: list[Event] = []
        self.bus.listen(self.events.append)
        self.limits = Limits(load_timeout_s=20.0, keep_alive_s=300, queue=512)
        self.heartbeat_s = 10.0
        self.accepting = True
        # The asking side of a relay network; None while it is not up.
        self.network: Network | None = None
        self.starter = ScriptedStarter()
        self.database = Database(directory / "hub.db")
        self.models = ModelsRepo(self.database)
        self.measured = MeasuredRepo(self.database)
        self.registry = Registry(self.models, self.measured, self.clock, self.bus)
        self.pool = Pool(self.registry, self.starter, memory_mib, lambda: self.limits, self.clock, self.bus)
        secrets = FileSecrets(directory)
        usage = UsageRepo(self.database), UsageLog(directory / "usage.log")
        self.quotas = Quotas(*usage, self.clock, "boot", lambda _: None)
        self.audit_log = AuditLog(directory / "audit", lambda: 30, lambda _: None, self.clock.mono)
        self.audit = Audit(self.audit_log, self.clock, lambda _: "host")
        self.journal = Journal(self.clock, self.bus, self.audit.ended)
        self.gateway = Gateway(
            self.pool,
            self.journal,
            self.quotas,
            self.audit,
            self.clock,
            SystemRng(),
            lambda: self.accepting,
            lambda: self.network,
        )
        self.ring = KeyRing(KeysRepo(self.database), self.quotas, self.clock, SystemRng(), self.bus)
        self.authenticator = Authenticator.open(KEY, self.ring, secrets, self.clock, SystemRng(), self.bus)
        self.max_body = max_body
        self.exposure = exposure or Exposure()
        self.url = ""

    async def __aenter__(self) -> Self:
        await self.database.open()
        await self.registry.open()
        self.audit_log.open()
        await self.quotas.open()
        await self.ring.open()
        hub = Hub(
            gateway=self.gateway,
            models=lambda: models_view(self.pool, self.journal),
            facts=lambda name: model_facts(self.pool, name, self.clock),
            authenticator=self.authenticator,
            accepting=lambda: self.accepting,
            clock=self.clock,
            rng=SystemRng(),
            heartbeat_s=lambda: self.heartbeat_s,
            max_body=self.max_body,
            exposure=self.exposure,
            offers=lambda: self.network.market.models() if self.network is not None else (),
        )
        self._runner = web.AppRunner(
            make_app(hub),
            handle_signals=False,
            handler_cancellation=True,
            access_log=None,
            shutdown_timeout=1.0,
        )
        await self._runner.setup()
        assert self._runner.server is not None
        self._server = await asyncio.get_running_loop().create_server(self._runner.server, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.session = aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.close()
        self._server.close()
        await self._runner.cleanup()
        await self.pool.close()
        await self.quotas.close()
        self.audit_log.close()
        await self.database.close()

    def file(self, name: str = "tiny") -> Path:
        """A small model's file, written when first asked for."""
        path = self.dir / f"{name}.gguf"
        if not path.exists():
            path.write_bytes(gguf_builder.tiny())
        return path

    async def add(self, name: str = "tiny", **fields: Any) -> Entry:
        """Register a small model of a file of its own."""
        given = {"ctx": 512, "slots": 2, **fields}
        if given.get("kind") != "url":
            given.setdefault("path", str(self.file(name.replace("/", "_"))))
        return await self.registry.add(ModelSpec(name=name, **given))

    async def warm(self, name: str = "tiny") -> None:
        """Load a model without a request."""
        self.pool.runner(name).want(force=True)
        await self.until(lambda: self.pool.is_warm(name))

    async def until(self, holds: Any, within: float = 3.0) -> None:
        """Wait until ``holds()``."""
        deadline = self.clock.mono() + within
        while not holds():
            assert self.clock.mono() < deadline, "it did not come to that"
            await asyncio.sleep(0.002)

    async def idle(self, within: float = 1.0) -> None:
        """Wait until no request is in flight anywhere; fails where one is left behind."""
        await self.until(
            lambda: (
                self.journal.in_flight == 0
                and self.starter.open == 0
                and all(runner.life.in_flight == runner.waiting == 0 for runner in self.pool.runners())
                and all(runner.slots is None or runner.slots.busy == 0 for runner in self.pool.runners())
            ),
            within,
        )

    async def chat(self, **fields: Any) -> tuple[int, dict[str, str], Any]:
        """Ask once, unstreamed or not; status, headers, and the body decoded or as text."""
        body = {"messages": [{"role": "user", "content": "Hi"}], **fields}
        async with self.session.post(f"{self.url}/v1/chat/completions", json=body) as reply:
            text = await reply.text()
            headers = {name.lower(): value for name, value in reply.headers.items()}
            return reply.status, headers, text if "stream" in headers["content-type"] else json.loads(text)


def frames(text: str) -> list[Any]:
    """The data of a stream, decoded; ``[DONE]`` as text. Fails for anything else but comments."""
    found: list[Any] = []
    for line in text.splitlines():
        if line.startswith("data: "):
            found.append(line[6:] if line[6:] == "[DONE]" else json.loads(line[6:]))
        else:
            assert line == "" or line.startswith(":"), line
    return found


def texts(text: str, choice: int = 0) -> str:
    """The text of one choice of a stream."""
    return "".join(
        each["delta"].get("content") or ""
        for frame in frames(text)
        if isinstance(frame, dict)
        for each in frame.get("choices", ())
        if each["index"] == choice
    )

"""A node whose network listener runs in this process, and an edge before it that a test sets wrong."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from relaydesk.core.hopcheck.model import Layer, Observation
from relaydesk.core.hopcheck.probes import Probe
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.hopcheck.door import Trusts
from relaydesk.engine.hopcheck.sends import Tools
from relaydesk.engine.hopcheck.service import HopChecks
from relaydesk.engine.jobs import JobBoard
from relaydesk.engine.relay.service import NetworkService
from relaydesk.surfaces.network.listener import network_listener
from tests.support.lab_ground import network_service, network_settings

Head = list[tuple[str, str]]


@dataclass
class CheckedNode:
    """A node in this process."""

    service: NetworkService
    checks: HopChecks
    jobs: JobBoard
    dispatcher: Dispatcher
    port: int

    @property
    def url(self) -> str:
        """Its own door."""
        return f"http://127.0.0.1:{self.port}"

    def nonce(self) -> str:
        """A fresh nonce."""
        return self.checks.nonces.make()[0]

    async def finished(self, job: str) -> str:
        """How a job ended."""
        while True:
            (view,) = [each for each in self.jobs.view().jobs if each.id == job]
            if view.state != "running":
                return view.state
            await asyncio.sleep(0.01)


@asynccontextmanager
async def checked_node(folder: Path, **changes: Any) -> AsyncIterator[CheckedNode]:
    """Start it."""
    settings = network_settings(**changes)
    async with network_service(folder, settings) as service:
        clock = SystemClock()
        jobs = JobBoard(clock, SystemRng(), service.ground.bus)
        checks = HopChecks(service, jobs)
        dispatcher = Dispatcher()
        checks.register(dispatcher)
        server = network_listener(service, settings, clock, checks)
        listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        service.listening = (f"http://127.0.0.1:{port}",)
        try:
            yield CheckedNode(service, checks, jobs, dispatcher, port)
        finally:
            await jobs.close()
            listening.close()
            server.pre_shutdown()
            await server.shutdown(1.0)


@dataclass
class Edge:
    """A proxy. ``answer`` may give whole answers of its own by the request's head; ``rewrite`` changes the
    status and the headers of the node's; ``buffers`` holds answers back."""

    upstream: int
    port: int = 0
    answer: Callable[[bytes], bytes | None] = lambda _head: None
    rewrite: Callable[[str, Head], tuple[str, Head]] = lambda status, head: (status, head)
    buffers: bool = False
    asked: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one exchange."""
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.asked.append(head)
            own = self.answer(head)
            if own is not None:
                writer.write(own)
                await writer.drain()
            else:
                await self._through(head, reader, writer)
        writer.close()

    async def _through(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", self.upstream)
        outer.write(head)
        pump = asyncio.create_task(_pump(reader, outer))
        try:
            line, *fields = (await inner.readuntil(b"\r\n\r\n"))[:-4].decode("latin-1").split("\r\n")
            status, headers = self.rewrite(
                line.partition(" ")[2],
                [tuple(each.split(": ", 1)) for each in fields],  # type: ignore[misc]
            )
            made = "".join(f"{name}: {value}\r\n" for name, value in headers)
            writer.write(f"HTTP/1.1 {status}\r\n{made}\r\n".encode("latin-1"))
            if self.buffers:
                writer.write(await inner.read(-1))
            else:
                await _pump(inner, writer)
            await writer.drain()
        finally:
            pump.cancel()
            outer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def edge(upstream: int, **fields: Any) -> AsyncIterator[Edge]:
    """An edge in front of a port of this machine."""
    made = Edge(upstream, **fields)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


def page(status: str, body: bytes = b"<html>no</html>", *headers: str) -> bytes:
    """A whole answer of an edge."""
    more = "".join(f"{each}\r\n" for each in headers)
    return f"HTTP/1.1 {status}\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


def without(*names: str) -> Callable[[str, Head], tuple[str, Head]]:
    """A rewrite that removes headers."""
    gone = {name.lower() for name in names}
    return lambda status, head: (status, [each for each in head if each[0].lower() not in gone])


def tools(**changes: Any) -> Tools:
    """What probes are sent with, here."""
    given: dict[str, Any] = {
        "trust": _trusts(),
        "clock": SystemClock(),
        "own": frozenset({"127.0.0.1"}),
    }
    return Tools(**(given | changes))


@cache
def _trusts() -> Trusts:
    return Trusts(*(ssl.create_default_context() for _ in range(3)))


@dataclass
class Told:
    """A watcher that keeps what it was told."""

    layers: tuple[Layer, ...] = ()
    planned_probes: int = 0
    begun: list[tuple[str, str]] = field(default_factory=list)
    over: list[Observation] = field(default_factory=list)

    def planned(self, layers: Sequence[Layer], probes: Mapping[str, Sequence[Probe]]) -> None:
        self.layers = tuple(layers)
        self.planned_probes = sum(len(each) for each in probes.values())

    def began(self, layer: Layer, probe: str) -> None:
        self.begun.append((layer.name, probe))

    def ended(self, layer: Layer, observed: Observation) -> None:
        self.over.append(observed)

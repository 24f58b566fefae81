"""A hub's TLS port in a thread of its own, on uvloop, so that real clients can block."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiohttp import web

from relaydesk.core.tls.names import parse_address
from relaydesk.engine.tls.addresses import Machine
from relaydesk.engine.tls.listener import Listener, serve_tls
from relaydesk.engine.tls.service import TlsService


class FakeClock:
    """The real time, moved by hand."""

    def __init__(self) -> None:
        self.offset_s = 0.0

    def wall_ms(self) -> int:
        return int((time.time() + self.offset_s) * 1000)

    def mono(self) -> float:
        return time.monotonic()

    def forward_days(self, days: float) -> None:
        self.offset_s += days * 86400


class Port:
    """A served `TlsService` on 127.0.0.1 and ::1."""

    def __init__(self, service: TlsService, loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self.service = service
        self.number = 0
        self.listeners: list[Listener] = []
        self.unhandled: list[dict[str, Any]] = []
        self.loop: asyncio.AbstractEventLoop
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._main, args=(loop_factory,), daemon=True)
        self._thread.start()
        self._ready.wait(20)
        if self._failure:
            raise self._failure

    def _main(self, loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                runner.run(self._serve())
        except BaseException as exc:
            self._failure = exc
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(lambda _loop, context: self.unhandled.append(context))
        self._stop = asyncio.Event()
        app = web.Application()
        app.router.add_get("/", self._hello)
        app.router.add_post("/echo", self._echo)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        assert runner.server is not None
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            sock = socket.socket(family)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, self.number))
            self.number = sock.getsockname()[1]
            hint = lambda: self.service.hint(f"https://localhost:{self.number}")  # noqa: E731
            self.listeners.append(await serve_tls(runner.server, sock, self.service.server_context, hint))
        running = asyncio.create_task(self.service.run())
        self._ready.set()
        await self._stop.wait()
        running.cancel()
        await asyncio.wait([running])
        for listener in self.listeners:
            listener.close()
            await listener.wait_closed()
        await runner.cleanup()

    async def _hello(self, _request: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def _echo(self, request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    def call(self, function: Callable[[], Any]) -> Any:
        """Run ``function`` (plain or coroutine) on the server's loop."""

        async def run() -> Any:
            result = function()
            return await result if asyncio.iscoroutine(result) else result

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(20)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)
        assert not self._thread.is_alive()
        if self._failure:
            raise self._failure

    def raw(self, host: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection((host, self.number), timeout=15)

    def connect(self, name: str | None, ca: Path | None = None, host: str = "127.0.0.1") -> ssl.SSLSocket:
        """A verified connection, as strict as Python 3.13 is by default."""
        context = ssl.create_default_context(cafile=str(ca or self.service.ca_path))
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.set_alpn_protocols(["h2", "http/1.1"])
        sock = self.raw(host)
        try:
            return context.wrap_socket(sock, server_hostname=name)
        except BaseException:
            sock.close()
            raise


class Hub:
    """Makes services and ports in one state directory."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.clock = FakeClock()
        self.alerts: list[tuple[str, str]] = []
        self.machine = Machine("hub", frozenset())
        self.ports: list[Port] = []

    def have(self, *addresses: str, hostname: str = "hub") -> None:
        found = [parse_address(text) for text in addresses]
        self.machine = Machine(hostname, frozenset(a for a in found if a is not None))

    def service(self, *extra: Any, own: tuple[Path, Path] | None = None, every: float = 0.05) -> TlsService:
        cert, key = own or (None, None)
        return TlsService(
            self.state, None, extra, cert, key, self.clock,
            lambda topic, sentence: self.alerts.append((topic, sentence)),
            machine=lambda: self.machine, check_every=every,
        )  # fmt: skip

    def serve(self, service: TlsService, *, loop: Callable[[], Any] = uvloop.new_event_loop) -> Port:
        service.prepare()
        port = Port(service, loop)
        self.ports.append(port)
        return port

    def said(self, topic: str) -> list[str]:
        return [sentence for what, sentence in self.alerts if what == topic]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    made = Hub(tmp_path / "state")
    yield made
    for port in made.ports:
        port.stop()
        assert port.unhandled == []


def wait_for(condition: Callable[[], Any], seconds: float = 8.0) -> Any:
    """Poll until true: what is waited for happens in another thread."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)
    return result


@pytest.fixture
def eventually() -> Callable[..., Any]:
    return wait_for

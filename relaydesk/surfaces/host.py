"""A node with its listeners, from start to exit: what ``serve`` runs and the console embeds.

What is printed goes through ``say``, so that each front decides where it appears.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web

from relaydesk.config.load import Loaded
from relaydesk.config.paths import Paths
from relaydesk.core.codec import fault_of
from relaydesk.core.ports import Clock, Rng
from relaydesk.engine.logbook import LogBook
from relaydesk.engine.malloc import keep_large_buffers_mapped
from relaydesk.engine.node import Node
from relaydesk.engine.pool.facts import model_facts
from relaydesk.engine.pool.views import models_view
from relaydesk.engine.sdnotify import SdNotify
from relaydesk.engine.tasks import cancel_and_wait, spawn
from relaydesk.engine.tls.context import silence_undecodable_names
from relaydesk.engine.tls.listener import Listener, serve_tls
from relaydesk.engine.tls.service import TlsService
from relaydesk.surfaces.control.server import ControlServer
from relaydesk.surfaces.network.listener import network_listener
from relaydesk.surfaces.network.server import NetworkServer
from relaydesk.surfaces.public.app import make_app
from relaydesk.surfaces.public.exposure import exposure_of
from relaydesk.surfaces.public.sockets import bind
from relaydesk.surfaces.public.state import Hub

_log: Final = logging.getLogger(__name__)

MIB: Final = 1_048_576
# How long closing listeners waits for responses that are being written.
_SHUTDOWN_S: Final = 3.0


class Host:
    """One node with its public listener and its control socket."""

    def __init__(
        self,
        loaded: Loaded,
        paths: Paths,
        book: LogBook,
        clock: Clock,
        rng: Rng,
        environ: Mapping[str, str],
        *,
        metrics: bool = False,
    ) -> None:
        self.node = Node(loaded, paths, book, clock, rng, environ, metrics=metrics)
        self._sd = SdNotify(environ, os.getpid())
        self._hurry = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._network: NetworkServer | None = None
        self._listeners: list[Listener | asyncio.Server] = []
        self._node_listeners: list[Listener | asyncio.Server] = []
        self._control: ControlServer | None = None

    async def run(self, on_ready: Callable[[Node, str], None]) -> None:
        """Open everything, serve until stopped, drain, close. Raises `FaultError` where it cannot start.

        ``on_ready`` is told the node and, once in its life, the default key that was made for it.
        """
        node = self.node
        silence_undecodable_names()
        keep_large_buffers_mapped()
        await node.take()
        # Before anything is made: a port that is in use must not cost a first start its key.
        settings = node.loaded.settings
        sockets: list[socket.socket] = []
        network: list[socket.socket] = []
        try:
            sockets = bind(settings.listen)
            if settings.network == "on":
                network = bind(settings.network_listen)
        except BaseException:
            for sock in sockets:
                sock.close()
            await node.close()
            raise
        try:
            await node.open()
            urls = await self._listen(sockets)
            await self._listen_for_nodes(network)
            self._control = ControlServer(node.api, node.paths.socket, node.clock)
            await self._control.start()
            node.supervisor.add(self._sd)
            services = spawn(node.supervisor.run(), name="services")
            stop = spawn(_until(node.stop_requested), name="stop requested")
            try:
                node.ready(urls)
                on_ready(node, await node.claim_first_key())
                self._sd.send("READY=1", f"STATUS=listening on {', '.join(urls)}")
                await asyncio.wait([services, stop], return_when=asyncio.FIRST_COMPLETED)
                if services.done():
                    await services
                self._sd.send("STOPPING=1", "STATUS=draining")
                # Other nodes are still told that this one goes down, and may use the tickets they have.
                _close_all(self._listeners)
                await node.drain(self._hurry)
            finally:
                await cancel_and_wait(stop)
                node.supervisor.stop()
                if not services.done():
                    await asyncio.wait([services])
        finally:
            await self._close()
            for sock in (*sockets, *network):
                sock.close()

    def stop(self) -> None:
        """Drain and stop; a second call stops at once."""
        if self.node.stop_requested.is_set():
            self._hurry.set()
        self.node.stop_requested.set()

    def install_signals(self) -> None:
        """TERM and INT stop, HUP reloads (design §3)."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._reload)

    def _reload(self) -> None:
        from relaydesk.core.commands import Reload

        async def run() -> None:
            self._sd.send("RELOADING=1")
            outcome = await self.node.api.call(Reload())
            self._sd.send("READY=1")
            if outcome.ok:
                _log.info("settings were read again: %s", _changes(outcome.value))
            elif outcome.fault is not None:
                _log.error("settings stay as they were: %s", fault_of(outcome.fault).sentence)

        self._reloading = spawn(run(), name="reload")

    async def _listen(self, sockets: list[socket.socket]) -> tuple[str, ...]:
        node, settings = self.node, self.node.loaded.settings
        hub = Hub(
            gateway=node.gateway,
            models=lambda: models_view(node.pool, node.journal),
            facts=lambda name: model_facts(node.pool, name, node.clock),
            authenticator=node.authenticator,
            accepting=node.accepting,
            clock=node.clock,
            rng=node.rng,
            heartbeat_s=lambda: node.loaded.settings.heartbeat,
            max_body=settings.max_body_mb * MIB,
            exposure=exposure_of(settings),
            offers=lambda: node.network.parts.exchange.market.models() if node.network.parts else (),
        )
        port = sockets[0].getsockname()[1]
        self._runner = web.AppRunner(
            make_app(hub),
            handle_signals=False,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=75.0,
            shutdown_timeout=_SHUTDOWN_S,
        )
        await self._runner.setup()
        server = self._runner.server
        assert server is not None
        scheme = "https" if settings.tls_on else "http"
        named = tuple(f"https://{name}:{port}" for name in settings.tls_domain if not name.startswith("*"))
        urls = (*named, *_urls(scheme, settings.listen.host, port))
        for sock in sockets:
            self._listeners.append(await _serve(server, sock, urls[0], node.tls if settings.tls_on else None))
        return urls

    async def _listen_for_nodes(self, sockets: list[socket.socket]) -> None:
        """Open the network listener, where the network is up (design §6)."""
        node = self.node
        parts = node.network.parts
        if parts is None:
            # Nobody would ever answer there: who connects is to be told so at once.
            for sock in sockets:
                sock.close()
            return
        settings = node.loaded.settings
        self._network = network_listener(node.network, settings, node.clock, node.hopcheck)
        port = sockets[0].getsockname()[1]
        tls = node.tls if node.network.door.tls else None
        urls = _urls("http" if tls is None else "https", settings.network_listen.host, port)
        for sock in sockets:
            self._node_listeners.append(await _serve(self._network, sock, urls[0], tls))
        node.network.listening = urls

    async def _close(self) -> None:
        _close_all(self._listeners)
        _close_all(self._node_listeners)
        if self._runner is not None:
            await self._runner.cleanup()
        if self._network is not None:
            self._network.pre_shutdown()
            await self._network.shutdown(_SHUTDOWN_S)
        if self._control is not None:
            await self._control.close()
        await self.node.close()


def _close_all(listeners: list[Listener | asyncio.Server]) -> None:
    for listener in listeners:
        listener.close()


async def _serve(
    server: web.Server, sock: socket.socket, url: str, tls: TlsService | None
) -> Listener | asyncio.Server:
    if tls is None:
        return await asyncio.get_running_loop().create_server(server, sock=sock)
    return await serve_tls(server, sock, tls.server_context, lambda: tls.hint(url))


def _urls(scheme: str, host: str, port: int) -> tuple[str, ...]:
    """What to tell people: this machine's name where every interface listens."""
    if host in ("", "0.0.0.0", "::"):
        name = socket.gethostname()
        return tuple(dict.fromkeys((f"{scheme}://localhost:{port}", f"{scheme}://{name}:{port}")))
    shown = f"[{host}]" if ":" in host else host
    return (f"{scheme}://{shown}:{port}",)


def _changes(value: dict[str, list[str]]) -> str:
    parts = []
    if value["applied"]:
        parts.append(f"{', '.join(value['applied'])} applied")
    if value["needs_restart"]:
        parts.append(f"{', '.join(value['needs_restart'])} wait for a restart")
    return "; ".join(parts) or "nothing changed"


async def _until(event: asyncio.Event) -> None:
    await event.wait()

"""Taps: listeners in front of the demo's nodes that pass everything on and keep it until told to `drop` it.

A tap connects to its node from the address that it was connected from, so that the node sees what it would
see without one. All taps run in one thread with a loop of its own.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from dataclasses import dataclass, field
from typing import Any, Final

_PIECE: Final = 64 * 1024
_CLOSE_S: Final = 5.0
_TAKEN_S: Final = 0.02


@dataclass(slots=True)
class Conversation:
    """What went over one connection: ``source`` is who connected, ``to`` whose tap it was."""

    to: str
    source: str
    inward: bytearray = field(default_factory=bytearray)
    outward: bytearray = field(default_factory=bytearray)


class Tap:
    """One listener at a port of ``host`` that the system chose. Who connects waits for `lead`."""

    def __init__(self, name: str, host: str, loop: asyncio.AbstractEventLoop) -> None:
        self.name = name
        self.socket = socket.create_server((host, 0))
        self.address: tuple[str, int] = self.socket.getsockname()[:2]
        self.url = "http://{}:{}".format(*self.address)
        self._loop = loop
        self._upstream: asyncio.Future[tuple[str, int]] = loop.create_future()
        self._kept: list[Conversation] | None = []
        # Of a connection that is half closed the loop itself holds nothing.
        self._serving: set[asyncio.Task[None] | None] = set()

    def lead(self, host: str, port: int) -> None:
        """Where it passes everything on to."""
        self._loop.call_soon_threadsafe(self._upstream.set_result, (host, port))

    def drop(self) -> None:
        """Keep nothing any more."""
        self._kept = None

    def conversations(self) -> list[Conversation]:
        """What was kept."""
        return list(self._kept or ())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one connection on until both sides have ended it."""
        out: asyncio.StreamWriter | None = None
        self._serving.add(asyncio.current_task())
        try:
            source = str(writer.get_extra_info("peername")[0])
            host, port = await asyncio.shield(self._upstream)
            back, out = await asyncio.open_connection(host, port, local_addr=(source, 0))
            kept = self._keep(source)
            await asyncio.gather(
                self._pass(reader, out, kept.inward if kept else None),
                self._pass(back, writer, kept.outward if kept else None),
            )
        except OSError:
            # One side broke off: the other sees it break off too.
            for each in (writer, out):
                if each is not None:
                    each.transport.abort()
        except asyncio.CancelledError:
            pass  # all taps are closing; asyncio's servers take it for a failure
        finally:
            for each in (writer, out):
                if each is not None:
                    each.close()
            self._serving.discard(asyncio.current_task())

    def _keep(self, source: str) -> Conversation | None:
        """A conversation to keep what a connection carries in, None where nothing is kept."""
        if self._kept is None:
            return None
        self._kept.append(Conversation(self.name, source))
        return self._kept[-1]

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray | None
    ) -> None:
        while data := await reader.read(_PIECE):
            if kept is not None and self._kept is not None:
                kept.extend(data)
            writer.write(data)
            await writer.drain()
        writer.write_eof()


class Taps:
    """Every tap, and the thread they run in. A context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="taps", daemon=True)
        self._stop = asyncio.Event()
        self._taps: list[Tap] = []
        self._servers: list[asyncio.Server] = []

    def add(self, name: str, host: str) -> Tap:
        """A tap at ``host``. Raises `OSError`."""
        tap = Tap(name, host, self._loop)
        self._taps.append(tap)
        asyncio.run_coroutine_threadsafe(self._open(tap), self._loop).result(_CLOSE_S)
        return tap

    def drop(self) -> None:
        """Keep nothing any more."""
        for tap in self._taps:
            tap.drop()

    def conversations(self) -> list[Conversation]:
        """What was kept, of all."""
        return [each for tap in self._taps for each in tap.conversations()]

    async def _open(self, tap: Tap) -> None:
        self._servers.append(await asyncio.start_server(tap.serve, sock=tap.socket))

    def _run(self) -> None:
        self._loop.run_until_complete(self._until_stopped())
        self._loop.close()

    async def _until_stopped(self) -> None:
        await self._stop.wait()
        for server in self._servers:
            server.close()
        # A connection that was just taken becomes a task a moment later.
        await asyncio.sleep(_TAKEN_S)
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def __enter__(self) -> Taps:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_CLOSE_S)

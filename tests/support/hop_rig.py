"""A relay over real sockets, with targets in front of it that do as they are told."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec

from relaydesk.core.ports import Clock
from relaydesk.core.relay.address import encode_address, operator_id
from relaydesk.core.relay.hop import (
    LEDGER_PATH,
    METHOD_HEADER,
    NODE_HEADER,
    PATH_HEADER,
    RELAY_PATH,
    TARGET_HEADER,
)
from relaydesk.core.relay.records.canonical import public_of
from relaydesk.core.relay.records.ephemeral import LIFE_S, sign_ephemeral
from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.relay.outbound.outbound import Outbound
from relaydesk.engine.relay.relaying.circuits import Caps, Circuits
from relaydesk.engine.relay.relaying.forward import Forwarder
from relaydesk.engine.relay.relaying.meter import RelayMeter
from relaydesk.engine.relay.relaying.verified import VerifiedTargets
from relaydesk.surfaces.network.app import make_network_app
from relaydesk.surfaces.network.state import Network

AGE_KEY = "age1" + "q" * 58


@dataclass
class Got:
    """One request as a target received it, its head as raw text."""

    head: str
    body: bytes

    @property
    def path(self) -> str:
        return self.head.split(" ")[1]

    @property
    def headers(self) -> dict[str, str]:
        pairs = [line.split(": ", 1) for line in self.head.split("\r\n")[1:] if line]
        return {name.lower(): value for name, value in pairs}


Do = Callable[[asyncio.StreamReader, asyncio.StreamWriter, Got], Awaitable[None]]


def answer(
    body: bytes = b"", status: int = 200, headers: Iterable[tuple[str, str]] = (), *, length: bool = True
) -> Do:
    """Answers every request so, and keeps the connection."""
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers)]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    data = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body

    async def do(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _got: Got) -> None:
        writer.write(data)

    return do


class Target:
    """A node that can be asked for its details and does with every other request what ``do`` says.

    ``details`` overrides fields of the details; None answers 503 for them.
    """

    def __init__(self, do: Do | None = None, *, seed: int = 1, tls: ssl.SSLContext | None = None) -> None:
        self.do = do or answer(b"fine", headers=[("Content-Type", "text/plain")])
        self.owner_key, self.seed = bytes([seed]) * 32, bytes([seed + 100]) * 32
        self.ref = NodeRef(operator_id(self.owner_key), seed)
        self.got: list[Got] = []
        self.details: dict[str, Any] | None = {}
        self.asked_details = 0
        self.connections = 0
        self.open = 0
        self._tls = tls
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)

    @property
    def listed(self) -> Listed:
        scheme = "https" if self._tls else "http"
        return Listed(
            self.ref,
            encode_address(self.owner_key),
            encode_address(public_of(self.seed)),
            f"{scheme}://127.0.0.1:{self.port}",
        )

    def own_details(self) -> bytes:
        """The document, signed now."""
        now = SystemClock().wall_ms() // 1000
        advert = sign_ephemeral(self.seed, self.ref, AGE_KEY, now, now + LIFE_S)
        listed = self.listed
        document = {
            "operator_id": self.ref.operator,
            "node_id": self.ref.node,
            "owner_addr": listed.owner,
            "signing_addr": listed.signing,
            "ephemeral_age_pubkey": advert.age_pubkey,
            "ephemeral_issued_at": advert.issued_at,
            "ephemeral_expiry": advert.expiry,
            "ephemeral_sig": advert.sig,
            "models": [],
        }
        return msgspec.json.encode({**document, **(self.details or {})})

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                got = await _read(reader)
                if got.path == "/v1/zs/details":
                    self.asked_details += 1
                    status = 503 if self.details is None else 200
                    await answer(self.own_details(), status)(reader, writer, got)
                else:
                    self.got.append(got)
                    await self.do(reader, writer, got)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # cancelled by `__aexit__` alone
        finally:
            self.open -= 1
            self._tasks.discard(task)
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Got:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    got = Got(head, b"")
    if "content-length" in got.headers:
        got.body = await reader.readexactly(int(got.headers["content-length"]))
    elif got.headers.get("transfer-encoding") == "chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            got.body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
    return got


@dataclass
class FewNodes:
    """A directory of the nodes given."""

    listed: list[Listed] = field(default_factory=list)

    def nodes(self) -> tuple[Listed, ...]:
        return tuple(sorted(self.listed, key=lambda each: each.ref))

    def find(self, ref: NodeRef) -> Listed | None:
        return next((each for each in self.listed if each.ref == ref), None)


class NoMeterFile:
    """Stands for the months' table."""

    async def list(self) -> dict[int, int]:
        return {}

    async def add(self, month: int, count: int) -> None:
        pass


class HopRig:
    """A relay that listens. ``caps`` and ``draining`` may change meanwhile; ``network`` are more fields of
    `Network`."""

    def __init__(
        self,
        *targets: Target,
        caps: Caps | None = None,
        clock: Clock | None = None,
        allow_private: bool = True,
        trust: ssl.SSLContext | None = None,
        tls: ssl.SSLContext | None = None,
        **network: Any,
    ) -> None:
        self.targets = targets
        self.caps = caps or Caps()
        self.draining = False
        self.clock = clock or SystemClock()
        self.directory = FewNodes()
        self._tls = tls
        self._network = network
        self.outbound = Outbound(
            self.clock,
            allow_private=lambda: allow_private,
            tls=lambda: trust or ssl.create_default_context(),
        )
        self.verified = VerifiedTargets(self.outbound, self.clock)
        self.meter = RelayMeter(self.clock, NoMeterFile())  # type: ignore[arg-type]
        self.circuits = Circuits(self.clock, self.meter, lambda: self.caps, bytes(32))
        self.forwarder = Forwarder(
            directory=self.directory,
            outbound=self.outbound,
            verified=self.verified,
            circuits=self.circuits,
            draining=lambda: self.draining,
            also=frozenset({LEDGER_PATH}),
        )
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for target in self.targets:
            await self._stack.enter_async_context(target)
            self.directory.listed.append(target.listed)
        self.server = make_network_app(
            Network(
                forwarder=self.forwarder, clock=self.clock, draining=lambda: self.draining, **self._network
            )
        )
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self.server, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        self.server.pre_shutdown()
        await self.server.shutdown(0.1)
        await self.verified.aclose()
        await self.outbound.aclose()
        await self._stack.aclose()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"


def hop_headers(
    ref: NodeRef, path: str = "/v1/zs/reserve", method: str = "POST", **more: str
) -> dict[str, str]:
    """The four headers of a relayed request, and more."""
    return {
        TARGET_HEADER: str(ref.operator),
        NODE_HEADER: str(ref.node),
        PATH_HEADER: path,
        METHOD_HEADER: method,
        **more,
    }


async def raw(port: int, data: bytes, *, wait_s: float = 5.0) -> bytes:
    """What comes back for these bytes until the other side closes, or for ``wait_s``."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    found = b""
    try:
        async with asyncio.timeout(wait_s):
            while piece := await reader.read(65536):
                found += piece
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.close()
    return found


def request_bytes(ref: NodeRef, body: bytes = b"", path: str = RELAY_PATH, **more: str) -> bytes:
    """A relayed request, written by hand."""
    headers = {"Host": "relay", "Content-Length": str(len(body)), **hop_headers(ref), **more}
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body

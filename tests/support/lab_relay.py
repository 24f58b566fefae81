"""Small nodes of the relay network on loopback, written from the wire alone: each relays and is a target.

Nothing of ours is used to make what they answer: keys, addresses and signatures are by `cryptography` and
hashlib. A test says how a node misbehaves by `Canned` answers, one an exchange, or for good.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

MARKER: Final = "X-Zs-Relay-Hop"
# A well-formed age recipient whose secret nobody kept.
RECIPIENT: Final = "age1zx8dqsdgg42lgcmegy826hdqgkwhgg69stevxaxt9hr6sj3v4fhsc6v649"


@dataclass(frozen=True)
class Canned:
    """One answer as it stands. ``does``: answer, close before a byte, say nothing, or break the body off."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    marker: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    does: Literal["answer", "close", "hang", "cut"] = "answer"


def coded(status: int, code: str, *, marker: bool = False, retry_after: int | None = None) -> Canned:
    """An error in the wire's shape."""
    body = json.dumps({"error": {"message": "no", "type": code, "code": code}}).encode()
    headers = () if retry_after is None else (("Retry-After", str(retry_after)),)
    return Canned(status, body, marker=marker, headers=headers)


def html(status: int, *, marker: bool = False) -> Canned:
    """What a front door answers by itself."""
    return Canned(status, b"<html><h1>Bad gateway</h1></html>", "text/html", marker)


CLOSE: Final = Canned(does="close")
HANG: Final = Canned(does="hang")


def address(public: bytes) -> str:
    """58 characters (wire §4.1)."""
    check = hashlib.new("sha512_256", public).digest()[-4:]
    return base64.b32encode(public + check).decode().rstrip("=")


@dataclass
class Seen:
    """One request a node got."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class LabNode:
    """One node. ``as_relay`` and ``as_target`` are answers to give instead, the first of them next.

    ``always_relay`` and ``always_target`` come where those are empty; None lets the node do its job.
    """

    operator: int
    node: int = 1
    wall_ms: Callable[[], int] = lambda: 1_700_000_000_000
    proto_version: str = "9.10"
    models: list[dict[str, Any]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    issued_ago_s: int = 10
    life_s: int = 1500
    as_relay: list[Canned] = field(default_factory=list)
    as_target: list[Canned] = field(default_factory=list)
    always_relay: Canned | None = None
    always_target: Canned | None = None
    marks: bool = True
    relayed: list[Seen] = field(default_factory=list)
    served: list[Seen] = field(default_factory=list)
    gate: asyncio.Event | None = None

    def __post_init__(self) -> None:
        seed = hashlib.sha256(f"{self.operator}/{self.node}".encode()).digest()
        self.key = Ed25519PrivateKey.from_private_bytes(seed)
        owner = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(f"{self.operator}".encode()).digest())
        self.signing = address(self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
        self.owner = address(owner.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
        self.peers: dict[tuple[str, str], LabNode] = {}
        self.port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Listen on loopback, on the port it had before if it had one."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and every connection: nobody reaches it any more."""
        if self._server is None:
            return
        self._server.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        self._server = None

    def details(self) -> bytes:
        """``/v1/zs/details`` (wire §5.1), signed as §4.2 says."""
        issued = self.wall_ms() // 1000 - self.issued_ago_s
        expiry = issued + self.life_s
        recipient = RECIPIENT.encode()
        signed = b"zs-ephemeral-v1\0" + self.operator.to_bytes(8, "big") + self.node.to_bytes(8, "big")
        signed += len(recipient).to_bytes(4, "big") + recipient
        signed += expiry.to_bytes(8, "big") + issued.to_bytes(8, "big")
        document = {
            "operator_id": self.operator,
            "node_id": self.node,
            "owner_addr": self.owner,
            "signing_addr": self.signing,
            "ephemeral_age_pubkey": RECIPIENT,
            "ephemeral_issued_at": issued,
            "ephemeral_expiry": expiry,
            "ephemeral_sig": base64.b64encode(self.key.sign(hashlib.sha256(signed).digest())).decode(),
            "models": self.models,
            "oracle_source": "",
            "oracle_healthy": False,
            "version": "lab",
            "proto_version": self.proto_version,
            **self.extra,
        }
        return json.dumps({name: value for name, value in document.items() if value is not None}).encode()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (seen := await _request(reader)) is not None:
                if seen.path.partition("?")[0] == "/v1/zs/relay":
                    self.relayed.append(seen)
                    canned = self.as_relay.pop(0) if self.as_relay else self.always_relay
                    going = (
                        await self._answer(writer, canned) if canned else await self._forward(writer, seen)
                    )
                else:
                    self.served.append(seen)
                    canned = self.as_target.pop(0) if self.as_target else self.always_target
                    going = await (self._answer(writer, canned) if canned else self._target(writer, seen))
                if not going or seen.headers.get("connection") == "close":
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def _answer(self, writer: asyncio.StreamWriter, canned: Canned) -> bool:
        if canned.does == "hang":
            await asyncio.Event().wait()
        if canned.does == "close":
            return False
        length = len(canned.body) + (1000 if canned.does == "cut" else 0)
        lines = [f"HTTP/1.1 {canned.status} X", f"Content-Type: {canned.content_type}"]
        lines += [f"Content-Length: {length}", *(f"{name}: {value}" for name, value in canned.headers)]
        if canned.marker:
            lines.append(f"{MARKER}: 1")
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + canned.body)
        await writer.drain()
        return canned.does == "answer"

    async def _target(self, writer: asyncio.StreamWriter, seen: Seen) -> bool:
        path = seen.path.partition("?")[0]
        if path == "/v1/zs/details":
            return await self._answer(writer, Canned(200, self.details()))
        if path == "/v1/chat/completions":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            for at in range(3):
                writer.write(b"event: zs\ndata: %d\n\n" % at)
                await writer.drain()
                if self.gate is not None:
                    await self.gate.wait()
            return False
        return await self._answer(writer, coded(503, "provider_unavailable"))

    async def _forward(self, writer: asyncio.StreamWriter, seen: Seen) -> bool:
        """The relay's job (wire §1.3), as little of it as tests need."""
        wanted = (seen.headers.get("x-zs-relay-target", ""), seen.headers.get("x-zs-relay-target-node", ""))
        target = self.peers.get(wanted)
        if target is None:
            return await self._answer(writer, coded(404, "relay_unknown_target", marker=self.marks))
        try:
            there, to = await asyncio.open_connection("127.0.0.1", target.port)
        except OSError:
            return await self._answer(writer, coded(502, "relay_upstream_unreachable", marker=self.marks))
        try:
            head = [
                f"{seen.headers['x-zs-relay-method']} {seen.headers['x-zs-relay-path']} HTTP/1.1",
                "Host: t",
            ]
            head += [
                f"{name}: {seen.headers[name]}" for name in ("content-type", "accept") if name in seen.headers
            ]
            head += [f"Content-Length: {len(seen.body)}", "Connection: close"]
            to.write("\r\n".join(head).encode() + b"\r\n\r\n" + seen.body)
            answer = await there.readuntil(b"\r\n\r\n")
            if self.marks:
                answer = answer[:-2] + f"{MARKER}: 1\r\n\r\n".encode()
            writer.write(answer)
            while data := await there.read(65536):
                writer.write(data)
                await writer.drain()
        except asyncio.IncompleteReadError:
            return await self._answer(writer, coded(502, "relay_upstream_unreachable", marker=self.marks))
        finally:
            to.transport.abort()
        return False


async def _request(reader: asyncio.StreamReader) -> Seen | None:
    """The next request of a connection; None at its end."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    method, path, _ = head[0].split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(method, path, headers, body)

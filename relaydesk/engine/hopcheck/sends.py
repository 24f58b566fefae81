"""The probes as requests: each sends its own and says what came, and judges nothing."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from relaydesk.core.hopcheck.answers import code_of
from relaydesk.core.hopcheck.asked import Mode, asked_header
from relaydesk.core.hopcheck.browser import ORIGIN, REQUESTED
from relaydesk.core.hopcheck.model import Exchange, Headers, Observation, Place, Trust
from relaydesk.core.hopcheck.probes import (
    BODIES,
    CHUNKS,
    EXCHANGE_S,
    GAP_MS,
    NONCE_UNTESTED,
    REACH_S,
    SILENCE,
    SILENCE_SLACK_S,
    WEBSOCKET_UNTESTED,
)
from relaydesk.core.hopcheck.product import PAGE
from relaydesk.core.hopcheck.record import SIZE, held_back
from relaydesk.core.ports import Clock
from relaydesk.core.relay.dialable import public_address
from relaydesk.core.relay.hop import HopRequest, relay_headers
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.hopcheck.door import Door, Trusts, loose
from relaydesk.engine.hopcheck.http1 import Got, NoAnswerError, Send, arrivals, close, connect, exchange

DETAILS: Final = "/v1/zs/details"
_MOST_DETAILS: Final = 512 * 1024
_PLAIN: Final = (("Accept", "application/json"), ("Accept-Encoding", "identity"))
_BAD: Final = (("X-Zs-Relay-Target", "check"),)
# Nobody is operator 0: an id is 53 bits of a hash.
_NOBODY: Final = HopRequest(NodeRef(0, 0), DETAILS, "GET")
# A head that no server takes: whoever is first to read it says so, in a page of its own.
_ODD: Final = "this line is no header"


_IGNORED: Final = "the node does not know this nonce, or no more: it is good for five minutes"


@dataclass(frozen=True, slots=True)
class Tools:
    """What probes are sent with. ``own`` are this machine's addresses; ``target`` is another operator's node;
    ``body_s`` is how long large bodies may take."""

    trust: Trusts
    clock: Clock
    own: frozenset[str]
    nonce: str = ""
    target: NodeRef | None = None
    body_s: float = EXCHANGE_S


class Sender:
    """Sends to one layer. ``trusted`` turns false where its certificate is refused: then any is taken."""

    def __init__(self, door: Door, tools: Tools) -> None:
        self._door = door
        self._tools = tools
        self._loose = loose() if door.tls else None
        self.trust: Trust | None = None
        self._refusal: Exchange | None = None

    async def name(self) -> Observation:
        """Where the name leads."""
        host, port = self._door.host, self._door.port
        try:
            async with asyncio.timeout(5.0):
                found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, TimeoutError, UnicodeError):
            return self._saw("name")
        addresses = dict.fromkeys(str(each[4][0]) for each in found)
        return self._saw("name", places=tuple(self._place(each) for each in addresses))

    async def reach(self) -> Observation:
        """The refused hop, and whether anybody answers at all."""
        got = await self._post(_BAD, limit_s=REACH_S)
        self._refusal = got.exchange
        found = [("refusal", got.exchange)]
        if got.exchange.status:
            odd = f"GET {self._door.relay} HTTP/1.1\r\nHost: {self._door.authority}\r\n{_ODD}\r\n\r\n"
            found.append((PAGE, (await self._send(Send("GET", self._door.relay, raw=odd.encode()))).exchange))
        return self._saw("reach", *found)

    async def tls(self) -> Observation:
        """The handshake that callers make, and what is offered in it."""
        if not self._door.tls:
            return self._saw("tls", untested="it is plain HTTP")
        offered = self._tools.trust.both
        try:
            _, writer = await connect(self._door, offered)
        except NoAnswerError as error:
            if "not trusted" not in error.reason:
                return self._saw("tls", untested=error.reason)
            self.trust = Trust(error.reason.partition(": ")[2] or error.reason, None, await self._alpn())
            return self._saw("tls", trust=self.trust)
        over = writer.get_extra_info("ssl_object")
        ends = dict(over.getpeercert() or {}).get("notAfter") if over is not None else None
        now = self._tools.clock.wall_ms() / 1000
        valid = round(ssl.cert_time_to_seconds(str(ends)) - now) if ends else None
        self.trust = Trust("", valid, (over.selected_alpn_protocol() or "") if over is not None else "")
        await close(writer)
        return self._saw("tls", trust=self.trust)

    async def version(self) -> Observation:
        """The node's details."""
        send = Send("GET", self._door.prefix + DETAILS, _PLAIN, kept=_MOST_DETAILS)
        return self._saw("version", ("details", (await self._send(send)).exchange))

    async def refusal(self) -> Observation:
        """What `reach` got, looked at for the marker."""
        answer = self._refusal or (await self._post(_BAD)).exchange
        return self._saw("refusal", ("refusal", answer))

    async def error(self) -> Observation:
        """A hop to nobody; with a nonce also a failure that is a 502."""
        found = [("error", (await self._post(tuple(relay_headers(_NOBODY)))).exchange)]
        if self._tools.nonce:
            found.append(("fault", (await self._probe("error")).exchange))
        return self._saw("error", *found)

    async def success(self) -> Observation:
        """Another operator's details through this relay, and the node's own answer to a probe."""
        found: list[tuple[str, Exchange]] = []
        if self._tools.target is not None:
            asked = HopRequest(self._tools.target, DETAILS, "GET")
            got = await self._post(tuple(relay_headers(asked)), kept=_MOST_DETAILS)
            if got.exchange.status < 400:
                found.append(("details", got.exchange))
        if self._tools.nonce:
            found.append(("success", (await self._probe("echo")).exchange))
        why = "no other operator's node is known here, and there is no nonce" if not found else ""
        return self._saw("success", *found, untested=why)

    async def preflight(self) -> Observation:
        """What a browser asks before it sends a page's request."""
        asked = (
            ("Origin", ORIGIN),
            ("Access-Control-Request-Method", "POST"),
            ("Access-Control-Request-Headers", ",".join(REQUESTED)),
        )
        got = await self._send(Send("OPTIONS", self._door.relay, asked))
        return self._saw("preflight", ("preflight", got.exchange))

    async def exposed(self) -> Observation:
        """What a page can read: of a refusal, of an error, and of a success."""
        origin = (("Origin", ORIGIN),)
        found = [("refusal", (await self._post((*_BAD, *origin))).exchange)]
        if self._tools.nonce:
            found.append(("fault", (await self._probe("error", origin)).exchange))
            found.append(("success", (await self._probe("echo", origin)).exchange))
        return self._saw("exposed", *found)

    async def stream(self) -> Observation:
        """Timed chunks; where they seem to be held back once more, for a busy machine looks like a buffer."""
        if not self._tools.nonce:
            return self._saw("stream", untested=NONCE_UNTESTED)
        for again in (True, False):
            got = await self._probe("stream", (("Accept", "text/event-stream"),))
            if _ignored(got):
                return self._saw("stream", untested=_IGNORED)
            came = arrivals(got.pieces, SIZE, CHUNKS)
            if again and len(came) == CHUNKS and held_back(came, GAP_MS):
                continue
            break
        return self._saw("stream", ("stream", got.exchange), arrivals=came, gap_ms=GAP_MS)

    async def body(self) -> Observation:
        """Bodies of growing size; what does not get through in time says nothing."""
        found: list[tuple[str, Exchange]] = []
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._tools.body_s
        for size in BODIES:
            left = ends - loop.time()
            if left < 0.5:
                break
            got = await self._probe("echo", size=size, limit_s=left)
            found.append((f"{size}", got.exchange))
            if got.exchange.status != 200 and not (got.exchange.status == 400 and not self._tools.nonce):
                break
        if all(not answer.status and answer.kind == "timeout" for _, answer in found):
            return self._saw(
                "body", untested=f"1 MiB does not get through in {self._tools.body_s:g} s from here"
            )
        return self._saw("body", *found)

    async def compression(self) -> Observation:
        """An answer to a caller that would take a compressed one."""
        takes = (("Accept-Encoding", "gzip, deflate, br, zstd"), ("Accept", "*/*"))
        if self._tools.nonce:
            found = [("answer", (await self._probe("stream", takes, plain=False)).exchange)]
        else:
            found = [("answer", (await self._post((*relay_headers(_NOBODY), *takes), plain=False)).exchange)]
        return self._saw("compression", *found)

    async def headers(self) -> Observation:
        """Each of the network's headers, one of them twice."""
        if not self._tools.nonce:
            return self._saw("headers", untested=NONCE_UNTESTED)
        got = await self._probe("headers")
        if _ignored(got):
            return self._saw("headers", untested=_IGNORED)
        return self._saw("headers", ("headers", got.exchange))

    async def http2(self) -> Observation:
        """The refusal over HTTP/2, where that is offered."""
        if not self._door.tls:
            return self._saw("http2", untested="HTTP/2 is spoken over TLS")
        if self.trust is None or self.trust.alpn != "h2":
            return self._saw("http2", untested="it is not offered, and need not be")
        trusts = self._tools.trust
        from relaydesk.engine.hopcheck.http2 import exchange2  # slow to load, and for one probe

        context = trusts.second if self._context() is trusts.callers else loose(["h2"])
        send = Send("POST", self._door.relay, (*_BAD, *_PLAIN))
        return self._saw("http2", ("http2", await exchange2(self._door, send, context, EXCHANGE_S)))

    async def websocket(self) -> Observation:
        """Nothing yet."""
        return self._saw("websocket", untested=WEBSOCKET_UNTESTED)

    async def silence(self, probe: str, seconds: float) -> Observation:
        """An answer that is long in coming."""
        if not self._tools.nonce:
            return self._saw(probe, untested=NONCE_UNTESTED)
        got = await self._probe("silence", seconds=seconds, limit_s=seconds + SILENCE_SLACK_S)
        if _ignored(got):
            return self._saw(probe, untested=_IGNORED)
        return self._saw(probe, ("silence", got.exchange))

    def sends(self) -> Mapping[str, Callable[[], Awaitable[Observation]]]:
        """The probes by id, but for the silences."""
        return {
            "name": self.name,
            "reach": self.reach,
            "tls": self.tls,
            "version": self.version,
            "refusal": self.refusal,
            "error": self.error,
            "success": self.success,
            "preflight": self.preflight,
            "exposed": self.exposed,
            "stream": self.stream,
            "body": self.body,
            "compression": self.compression,
            "headers": self.headers,
            "http2": self.http2,
            "websocket": self.websocket,
        }

    async def send_silence(self, probe: str) -> Observation:
        """The silence of this id."""
        return await self.silence(probe, float(probe.removeprefix(f"{SILENCE}-")))

    async def _probe(
        self,
        mode: Mode,
        headers: Headers = (),
        *,
        seconds: float = 0.0,
        size: int = 0,
        limit_s: float = EXCHANGE_S,
        plain: bool = True,
    ) -> Got:
        """A POST that the node itself answers; without a nonce, one that it refuses."""
        ask = asked_header(self._tools.nonce, mode, seconds) if self._tools.nonce else _BAD[0]
        return await self._post((ask, *headers), size=size, limit_s=limit_s, plain=plain)

    async def _post(
        self,
        headers: Headers,
        *,
        size: int = 0,
        kept: int = 4096,
        limit_s: float = EXCHANGE_S,
        plain: bool = True,
    ) -> Got:
        given = {name.lower() for name, _ in headers}
        extra = tuple(each for each in _PLAIN if each[0].lower() not in given) if plain else ()
        send = Send("POST", self._door.relay, (*headers, *extra), size, kept)
        return await self._send(send, limit_s)

    async def _send(self, send: Send, limit_s: float = EXCHANGE_S) -> Got:
        return await exchange(self._door, send, self._context() if self._door.tls else None, limit_s)

    def _context(self) -> ssl.SSLContext:
        """What callers trust; where they do not, anything, so that the rest is seen all the same.

        Inside of the public layer certificates are often for another name: there nothing is asked for.
        """
        judged = self._door.layer.kind == "public" and not (self.trust is not None and self.trust.why)
        if judged:
            return self._tools.trust.callers
        assert self._loose is not None
        return self._loose

    async def _alpn(self) -> str:
        try:
            _, writer = await connect(self._door, loose(["h2", "http/1.1"]))
        except NoAnswerError:
            return ""
        over = writer.get_extra_info("ssl_object")
        await close(writer)
        return (over.selected_alpn_protocol() or "") if over is not None else ""

    def _place(self, address: str) -> Place:
        plain = address.partition("%")[0]
        own = plain in self._tools.own or ipaddress.ip_address(plain).is_loopback
        return Place(plain, own, public_address(plain))

    def _saw(
        self,
        probe: str,
        *exchanges: tuple[str, Exchange],
        untested: str = "",
        places: tuple[Place, ...] = (),
        trust: Trust | None = None,
        arrivals: tuple[int, ...] = (),
        gap_ms: int = 0,
    ) -> Observation:
        took = sum(answer.took_ms for _, answer in exchanges)
        return Observation(
            probe, self._door.layer.name, exchanges, untested, places, trust, arrivals, gap_ms, took
        )


def _ignored(got: Got) -> bool:
    """Whether the node took a probe for a hop: it knows no such nonce."""
    return got.exchange.status == 400 and code_of(got.exchange) == "relay_bad_target"

"""A minimal client: details, reserve, sealed request, sealed answer, receipt; through a relay (§3 to §5).

Written from the wire digest alone. It raises at the first thing that is not as the wire says. Its steps are
methods of their own, so a test misbehaves by calling them twice, out of order or with altered values; what
goes out can be changed on its way as well: ``alter`` and ``alter_headers``.
"""

from __future__ import annotations

import json
import os
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Self

import aiohttp
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.wire import codec, prices
from tests.support.wire.checks import check_details, check_key, check_receipt, check_ticket
from tests.support.wire.events import Event, Reader
from tests.support.wire.exchange import Answer, Refused, Reply, Reserved, Sent, Target, Violation
from tests.support.wire.opening import SEALED, media_type, open_reserve, open_whole, take

RESERVE: Final = "application/vnd.zs-reserve+json"
RESERVED: Final = "application/vnd.zs-reserve-response+json"
STREAM: Final = "text/event-stream"
CHAT: Final = "/v1/chat/completions"


# (tx id, more fields of the inner header), from the ticket: how a payment is opened.
Opened = Callable[[Reserved], tuple[str, dict[str, Any]]]


def plain_open(reserved: Reserved) -> tuple[str, dict[str, Any]]:
    """A payment of nobody's ledger: the right shape, and no extension."""
    return codec.tx_id(codec.ticket_bytes(reserved.ticket) + os.urandom(16)), {}


class MinimalClient:
    """One payer, one target, one relay. Use: ``async with MinimalClient(...) as client``.

    Hooks, each one plain attribute:

    ``alter``          (what, bytes) -> bytes on the way out; what: ``reserve.plain``, ``reserve.envelope``,
                       ``header`` (inner, JSON), ``body``, ``frame``, ``envelope``. Raising stops there.
    ``alter_headers``  (step, headers), to edit; step: ``details``, ``reserve``, ``inference``.
    ``on_event``       (answer, event) after each event of a stream; raising hangs up.
    ``sent``           all that went out, for ``resend``.
    """

    def __init__(
        self,
        relay_url: str,
        target: Target,
        payer: Ed25519PrivateKey,
        *,
        direct: bool = False,
        fee_bps: int = 0,
        now: Callable[[], float] = time.time,
        tls: ssl.SSLContext | bool = True,
    ) -> None:
        """``direct``: ``relay_url`` is the target's own. ``fee_bps``: the ledger's fee. ``now``: seconds."""
        self.relay_url, self.target, self.payer = relay_url.rstrip("/"), target, payer
        self.direct, self.fee_bps, self.now, self._tls = direct, fee_bps, now, tls
        self.alter: Callable[[str, bytes], bytes] = lambda _, raw: raw
        self.alter_headers: Callable[[str, dict[str, str]], None] = lambda _, headers: None
        self.on_event: Callable[[Answer, Event], None] = lambda answer, event: None
        self.sent: list[Sent] = []

    @property
    def payer_address(self) -> str:
        return codec.address(codec.public_of(self.payer))

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(
            auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar(), skip_auto_headers=("User-Agent",)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    # --- the steps

    async def details(self, query: str = "") -> dict[str, Any]:
        """Fetched and verified (§4.2, §5.1)."""
        sent = self._request("details", "GET", "/v1/zs/details" + query, {})
        details = codec.document((await self._plain(sent)).body)
        check_details(details, self.target, self.now())
        return details

    async def reserve(
        self,
        details: Mapping[str, Any],
        model: str,
        input_count: int,
        max_output: int,
        *,
        stream: bool = False,
        fields: Mapping[str, Any] | None = None,
        reply_key: tuple[str, str] | None = None,
    ) -> Reserved:
        """A checked ticket (§4.3).

        ``fields`` replace or add to the request before it is signed; None drops one. A ``payer_sig`` among
        them is sent as it stands. ``reply_key`` is (secret, recipient), fresh if None.
        """
        secret, recipient = reply_key or codec.new_reply_key()
        asked = {
            "model": model,
            "input_count": input_count,
            "max_output_count": max_output,
            "stream": stream,
            "proxy_recipient": recipient,
            "payer_addr": self.payer_address,
            "payer_issued_at": int(self.now()),
        } | dict(fields or {})
        if "payer_sig" not in asked:
            signed = codec.reserve_bytes(self.target.operator, self.target.node, asked)
            asked["payer_sig"] = codec.signature(self.payer, signed)
        asked = {name: value for name, value in asked.items() if value is not None}
        plain = self.alter("reserve.plain", json.dumps(asked).encode())
        sealed = codec.b64(codec.age_seal(details["ephemeral_age_pubkey"], plain))
        envelope = self.alter("reserve.envelope", json.dumps({"ciphertext": sealed}).encode())
        headers = {"Content-Type": RESERVE, "Accept": RESERVED}
        reply = await self._plain(self._request("reserve", "POST", "/v1/zs/reserve", headers, envelope))
        if media_type(reply) != RESERVED:
            raise Violation("reserve: content type")
        reserved = open_reserve(reply, secret, asked)
        check_ticket(reserved, details, self.target, self.fee_bps, self.now())
        return reserved

    def sealed_request(
        self,
        details: Mapping[str, Any],
        reserved: Reserved,
        body: bytes,
        *,
        tx_id: str,
        header: Mapping[str, Any] | None = None,
        path: str = CHAT,
    ) -> Sent:
        """The request, not sent yet (§4.4). ``header`` replaces or adds inner fields; None drops one."""
        tag = codec.admission_tag(reserved.key, reserved.ticket_id, tx_id, body)
        inner = {
            "reply_to_public_key": reserved.recipient,
            "algorand_tx_id": tx_id,
            "ticket_id": reserved.ticket_id,
            "admission_tag": codec.b64(tag),
        } | dict(header or {})
        inner = {name: value for name, value in inner.items() if value is not None}
        raw = self.alter("header", json.dumps(inner).encode())
        frame = self.alter("frame", codec.request_frame(raw, self.alter("body", body)))
        sealed = codec.b64(codec.age_seal(details["ephemeral_age_pubkey"], frame))
        envelope = self.alter("envelope", json.dumps({"ciphertext": sealed}).encode())
        accept = STREAM if reserved.ticket["stream"] else "application/json"
        return self._request("inference", "POST", path, {"Content-Type": SEALED, "Accept": accept}, envelope)

    async def receive(self, sent: Sent, reserved: Reserved, tx_id: str) -> Answer:
        """Sends it, opens and checks what comes (§4.7, §4.8)."""
        async with self._open(sent) as got:
            answer = Answer(reserved, tx_id, Reply(got.status, _headers(got)))
            wrapped = answer.reply.headers.get("x-zs-response-key")
            if wrapped is None:
                answer.reply.body = await got.read()
                if got.status // 100 == 2:
                    raise Violation("unsealed answer", answer)
                raise Refused("inference", answer.reply)
            check_key(wrapped, answer)
            try:
                if media_type(answer.reply) == STREAM:
                    await self._read_stream(got, answer)
                else:
                    answer.reply.body = await got.read()
                    open_whole(answer)
            except (aiohttp.ClientPayloadError, aiohttp.ClientConnectionError):
                raise Violation("cut", answer) from None
        check_receipt(answer, self.target)
        return answer

    async def exchange(
        self,
        body: Mapping[str, Any],
        *,
        max_output: int = 64,
        fields: Mapping[str, Any] | None = None,
        opened: Opened = plain_open,
        path: str = CHAT,
    ) -> Answer:
        """All the steps. ``fields`` as in ``reserve``; ``opened`` pays and may add inner fields."""
        raw = json.dumps(body).encode()
        details = await self.details()
        stream = bool(body.get("stream", False))
        bound = prices.input_bound(raw)
        reserved = await self.reserve(details, body["model"], bound, max_output, stream=stream, fields=fields)
        tx_id, extra = opened(reserved)
        sent = self.sealed_request(details, reserved, raw, tx_id=tx_id, header=extra, path=path)
        return await self.receive(sent, reserved, tx_id)

    async def resend(self, sent: Sent) -> Reply:
        """The same bytes once more; whatever comes back, read to its end and unopened."""
        async with self._open(sent) as got:
            try:
                return Reply(got.status, _headers(got), await got.read())
            except (aiohttp.ClientPayloadError, aiohttp.ClientConnectionError):
                raise Violation(f"{sent.step}: cut") from None

    # --- sending and reading

    def _request(self, step: str, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Sent:
        if not self.direct:
            headers |= {
                "X-Zs-Relay-Target": str(self.target.operator),
                "X-Zs-Relay-Target-Node": str(self.target.node),
                "X-Zs-Relay-Path": path,
                "X-Zs-Relay-Method": method,
            }
            method, path = "POST", "/v1/zs/relay"
        self.alter_headers(step, headers)
        return Sent(step, method, path, headers, body)

    @asynccontextmanager
    async def _open(self, sent: Sent) -> AsyncIterator[aiohttp.ClientResponse]:
        self.sent.append(sent)
        call = self._http.request(
            sent.method,
            self.relay_url + sent.path,
            data=sent.body,
            headers={"Accept-Encoding": "identity"} | sent.headers,
            allow_redirects=False,
            ssl=self._tls,
        )
        try:
            got = await call
        except aiohttp.ClientConnectionError:
            raise Refused(sent.step, Reply(0, {})) from None
        async with got:
            yield got

    async def _plain(self, sent: Sent) -> Reply:
        reply = await self.resend(sent)
        if reply.status != 200:
            raise Refused(sent.step, reply)
        return reply

    async def _read_stream(self, got: aiohttp.ClientResponse, answer: Answer) -> None:
        reader = Reader()
        async for chunk in got.content.iter_any():
            for event in reader.feed(chunk):
                answer.events.append(event)
                take(answer, event)
                self.on_event(answer, event)
        if reader.rest.strip() or not answer.done:
            raise Violation("cut", answer)


def _headers(got: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in got.headers.items()}

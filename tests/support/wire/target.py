"""A minimal target over HTTP: details, reserve, and a canned answer sealed whole or as a stream (§4.7)."""

from __future__ import annotations

import asyncio
import json
import os
import time

from aiohttp import web

from tests.support.wire import codec
from tests.support.wire.events import CONTENT, DONE, KEEP_ALIVE, RECEIPT, SETTLE, block
from tests.support.wire.lies import Document
from tests.support.wire.rules import Held, Refusal, Rules, SealedRefusal
from tests.support.wire.server import Server, close, coded, seen, uncoded

SEALED = "application/vnd.zs+json"
RESERVE = "application/vnd.zs-reserve+json"
RESERVED = "application/vnd.zs-reserve-response+json"
STREAM = "text/event-stream"


class MinimalTarget(Rules, Server):
    """One node of one operator, over HTTP; what it is made of and keeps: ``Rules``."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(await seen(request))
        steps = {
            ("GET", "/v1/zs/details"): ("details", self._details),
            ("POST", "/v1/zs/reserve"): ("reserve", self._reserve),
            ("POST", "/v1/chat/completions"): ("inference", self._inference),
        }
        name, step = steps.get((request.method, request.path), ("", None))
        if step is None:
            return web.Response(status=404)
        if self.lies.close == name:
            close(request)
        try:
            if name in self.lies.refuse:
                raise Refusal(*self.lies.refuse[name])
            return await step(request)
        except Refusal as refusal:
            if not refusal.code:
                return uncoded(refusal.status)
            return coded(refusal.status, refusal.code, refusal.message, **refusal.headers)

    async def _details(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self.advertised())

    # --- reserve (§4.3)

    async def _reserve(self, request: web.Request) -> web.StreamResponse:
        if request.content_type != RESERVE:
            raise Refusal(415, "bad_content_type")
        try:
            asked = codec.document(self.opened(await request.read()))
        except codec.Malformed as error:
            raise Refusal(400, "bad_reserve_envelope", str(error)) from None
        self.check_reserve(asked)
        key = os.urandom(32)
        ticket = self.ticket(asked, key)
        self.used[asked["proxy_recipient"]] = self.now()
        held = Held(
            ticket, key, asked["proxy_recipient"], asked["payer_addr"], asked.get("input_bound_version", 1)
        )
        self.tickets[ticket["ticket_id"]] = held
        wrapped = codec.b64(codec.age_seal(held.recipient, key))
        response: Document = {"ticket": dict(ticket), "wrapped_response_key": wrapped}
        self.lies.ticket_sent(response["ticket"])
        self.lies.reserve_response(response)
        sealed = codec.age_seal(held.recipient, json.dumps(response).encode())
        return web.Response(text=json.dumps({"ciphertext": codec.b64(sealed)}), content_type=RESERVED)

    # --- inference (§4.6, §4.7)

    async def _inference(self, request: web.Request) -> web.StreamResponse:
        started = time.monotonic()
        held, body = self.admit(await request.read())
        if self.lies.gate is not None:
            await self.lies.gate.wait()
        status, parts = 200, []
        try:
            asked = self.within(held, body)
            parts = self.words.parts(asked, self.usage, stream=held.ticket["stream"])
        except SealedRefusal as refusal:
            status = refusal.status
            parts = [
                json.dumps({"error": {"message": "no", "type": refusal.code, "code": refusal.code}}).encode()
            ]
        held.receipt = self.receipt(held, parts, status, int((time.monotonic() - started) * 1000))
        if self.lies.close == "answer":
            close(request)
        if self.lies.unsealed:
            return web.Response(body=b"".join(parts), content_type="application/json")
        headers = {"X-Zs-Response-Key": codec.b64(codec.age_seal(held.recipient, self.lies.key or held.key))}
        if held.ticket["stream"]:
            return await self._stream(request, held, parts, headers)
        return await self._whole(request, held, status, parts, headers)

    async def _whole(
        self, request: web.Request, held: Held, status: int, parts: list[bytes], headers: dict[str, str]
    ) -> web.StreamResponse:
        ids, key = (held.tx_id, held.ticket["ticket_id"]), held.key
        receipt = codec.b64(json.dumps(held.receipt).encode()).encode()
        headers["X-Zs-Receipt"] = codec.b64(codec.seal(key, receipt, codec.header_aad(*ids, "receipt")))
        if self.lies.settle_group is not None:
            headers["X-Zs-Settle-Group"] = self._settle_group(held)
        self.lies.headers(headers)
        sealed = codec.seal(key, b"".join(parts), codec.body_aad(*ids))
        split = {"nonce": codec.b64(sealed[:12]), "ciphertext": codec.b64(sealed[12:])}
        body = json.dumps(split).encode()
        body = self.lies.body(body) if self.lies.body else body
        await asyncio.sleep(self.lies.pause_s)
        answer = web.StreamResponse(status=status, headers=headers | {"Content-Type": SEALED})
        await answer.prepare(request)
        if self.lies.close == "headers":
            close(request)
        await answer.write(body)
        await answer.write_eof()
        return answer

    def _settle_group(self, held: Held) -> str:
        plain = codec.b64(self.lies.settle_group or b"").encode()
        aad = codec.header_aad(held.tx_id, held.ticket["ticket_id"], "settle-group")
        return codec.b64(codec.seal(held.key, plain, aad))

    def _blocks(self, held: Held, parts: list[bytes]) -> list[bytes]:
        """The stream's events: content, settle group, receipt, [DONE]."""
        ids = held.tx_id, held.ticket["ticket_id"]
        blocks = []
        for index, part in enumerate([*parts, json.dumps(held.receipt).encode()]):
            if index == len(parts) and self.lies.settle_group is not None:
                blocks.append(block(SETTLE, self._settle_group(held)))
            sealed = codec.b64(codec.seal(held.key, part, codec.frame_aad(*ids, index)))
            blocks.append(block(CONTENT if index < len(parts) else RECEIPT, sealed))
        return [*blocks, DONE]

    async def _stream(
        self, request: web.Request, held: Held, parts: list[bytes], headers: dict[str, str]
    ) -> web.StreamResponse:
        self.lies.headers(headers)
        blocks = self._blocks(held, parts)
        blocks = self.lies.events(blocks) if self.lies.events else blocks
        answer = web.StreamResponse(headers=headers | {"Content-Type": STREAM})
        await answer.prepare(request)
        if self.lies.close == "headers":
            close(request)
        for at, one in enumerate(blocks):
            await asyncio.sleep(self.lies.pause_s)
            if self.lies.close == f"event:{at}":
                close(request)
            await answer.write(KEEP_ALIVE + one if self.lies.keep_alive else one)
        await answer.write_eof()
        return answer

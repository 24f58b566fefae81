"""A minimal relay: forwards sealed bytes to the targets it knows, and says that it ran (§1.3, §2.1).

Written from the wire digest alone. It knows nothing of what it carries and of no extension of anybody.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from typing import Final

import aiohttp
from aiohttp import web
from yarl import URL

from tests.support.wire.server import MARKER, Seen, Server, close, coded, seen

PATHS: Final = frozenset(
    f"/v1/{name}"
    for name in (
        *("chat/completions", "responses", "images/generations", "images/edits", "models"),
        *("zs/reserve", "zs/details", "zs/attestation"),
    )
)
MODEL: Final = re.compile(r"/v1/models/[^/]+")
ID: Final = re.compile(r"[0-9]{1,20}")
FORWARDED: Final = ("Content-Type", "Accept")

Answer = Callable[[web.Request], web.Response]


class MinimalRelay(Server):
    """Knobs, each one plain attribute:

    ``marks``     False leaves the marker out, everywhere.
    ``answers``   given instead of forwarding, the first of them next: what ``coded`` or ``uncoded`` made,
                  wrapped in a callable (``lambda _: coded(503, "relay_busy")``), or ``close`` itself.
    ``always``    the same, for good, once ``answers`` is empty.
    ``after``     the same, but the target was asked first and its answer is thrown away.
    ``tamper``    changes the target's answer: (inner path, body) -> body. It is then held whole.
    ``cut_after`` breaks the answer off after so many bytes.
    ``seen``      every request as it arrived; ``answered``: (path, headers, body) of what went back.
    """

    def __init__(self, peers: dict[tuple[int, int], str] | None = None) -> None:
        self.peers = peers or {}  # (operator, node) -> base URL: this relay's own directory
        self.tls: ssl.SSLContext | bool = True  # how targets' certificates are checked
        self.marks = True
        self.answers: list[Answer] = []
        self.always: Answer | None = None
        self.after: Answer | None = None
        self.tamper: Callable[[str, bytes], bytes] | None = None
        self.cut_after: int | None = None
        self.seen: list[Seen] = []
        self.answered: list[tuple[str, dict[str, str], bytearray]] = []

    async def start(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
        await super().start(tls, host, port)
        self._http = aiohttp.ClientSession(
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Content-Type", "Accept", "Accept-Encoding"),
        )

    async def stop(self) -> None:
        await self._http.close()
        await super().stop()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(await seen(request))
        if request.path != "/v1/zs/relay" or request.method != "POST":
            return web.Response(status=404)
        answer = self._instead(request) or self._refused(request)
        if answer is not None:
            if self.marks:
                answer.headers[MARKER] = "1"
            return answer
        return await self._forward(request)

    def _instead(self, request: web.Request) -> web.Response | None:
        chosen = self.answers.pop(0) if self.answers else self.always
        return chosen(request) if chosen else None

    def _refused(self, request: web.Request) -> web.Response | None:
        asked = request.headers
        ids = asked.get("X-Zs-Relay-Target", ""), asked.get("X-Zs-Relay-Target-Node", "")
        if not all(ID.fullmatch(one) for one in ids):
            return coded(400, "relay_bad_target")
        path = asked.get("X-Zs-Relay-Path", "").partition("?")[0]
        if ".." in path or not (path in PATHS or MODEL.fullmatch(path)):
            return coded(400, "relay_bad_path")
        if asked.get("X-Zs-Relay-Method") not in ("GET", "POST"):
            return coded(400, "relay_bad_method")
        known = (int(ids[0]), int(ids[1])) in self.peers
        return None if known else coded(404, "relay_unknown_target")

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        asked = request.headers
        path = asked["X-Zs-Relay-Path"]
        base = self.peers[int(asked["X-Zs-Relay-Target"]), int(asked["X-Zs-Relay-Target-Node"])]
        sent = {name: asked[name] for name in FORWARDED if name in asked}
        url = URL(base.rstrip("/") + path, encoded=True)
        call = self._http.request(
            asked["X-Zs-Relay-Method"],
            url,
            data=self.seen[-1].body or None,
            headers=sent | {"Accept-Encoding": "identity"},
            allow_redirects=False,
            ssl=self.tls,
        )
        marks = {MARKER: "1"} if self.marks else {}
        try:
            got = await call
        except aiohttp.ClientError:
            refusal = coded(502, "relay_upstream_unreachable")
            refusal.headers.update(marks)
            return refusal
        async with got:
            if self.after is not None:
                await got.read()
                return self.after(request)
            back = {name: value for name, value in got.headers.items() if _goes_back(name)}
            return await self._copy(request, got, path, back | marks)

    async def _copy(
        self, request: web.Request, got: aiohttp.ClientResponse, path: str, headers: dict[str, str]
    ) -> web.StreamResponse:
        answer = web.StreamResponse(status=got.status, headers=headers)
        await answer.prepare(request)
        kept = bytearray()
        self.answered.append((path, headers, kept))
        try:
            if self.tamper is not None:
                kept += self.tamper(path, await got.read())
                await answer.write(bytes(kept))
            async for chunk in got.content.iter_any():
                room = len(chunk) if self.cut_after is None else self.cut_after - len(kept)
                kept += chunk[:room]
                await answer.write(chunk[:room])
                if room < len(chunk):
                    close(request)
        except aiohttp.ClientError:
            close(request)  # the target broke off: so does the copy
        await answer.write_eof()
        return answer


def _goes_back(name: str) -> bool:
    lower = name.lower()
    return lower in ("content-type", "retry-after") or (lower.startswith("x-zs-") and lower != MARKER.lower())

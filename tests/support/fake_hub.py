"""A Hub on loopback that misbehaves on demand: as much of its HTTP as listing and fetching touch."""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

from aiohttp import web

COMMIT: Final = "0123456789abcdef0123456789abcdef01234567"


def gguf_bytes(count: int, seed: int = 1) -> bytes:
    """``count`` bytes that begin like a GGUF and never repeat a block, so that a misplaced range shows."""
    blocks = (hashlib.sha256(b"%d %d" % (seed, index)).digest() for index in range(count // 32 + 1))
    return (b"GGUF" + b"".join(blocks))[:count]


def git_blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Seen:
    """One request, and how many bytes of content went out for it."""

    path: str
    range: str | None
    if_range: str | None
    authorization: str | None
    sent: int = 0


@dataclass
class FakeHub:
    """Serves ``files`` of one repository ``owner/repo``; the switches may be turned while it runs.

    ``cut_after``: for each coming file request, the bytes of content after which its connection is cut.
    ``statuses``: answered to the coming file requests instead of content. ``lies``: hashes listed though
    wrong. ``plain``: files listed as small ones, without LFS. ``cdn``: another server that file requests
    are redirected to; ``redirect`` overrides its address. ``shift_range``: ranges begin that
    many bytes too late.
    """

    files: dict[str, bytes]
    token: str | None = None
    gated: bool = False
    unlisted: bool = False
    list_status: int = 0
    list_delay: float = 0.0
    cut_after: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    lies: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    plain: set[str] = field(default_factory=set)
    chunk: int = 1 << 16
    delay: float = 0.0
    ignore_range: bool = False
    shift_range: int = 0
    chunked: bool = False
    cdn: FakeHub | None = None
    redirect: str | None = None
    seen: list[Seen] = field(default_factory=list)
    url: str = ""
    serving: asyncio.Event = field(default_factory=asyncio.Event)
    _runner: web.AppRunner | None = None

    async def __aenter__(self) -> FakeHub:
        app = web.Application()
        app.router.add_get("/api/models/{owner}/{repo}", self._list)
        app.router.add_get("/{owner}/{repo}/resolve/{revision}/{path:.+}", self._file)
        app.router.add_get("/cdn/{path:.+}", self._content)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    @property
    def sent(self) -> int:
        """Bytes of content sent in all."""
        return sum(one.sent for one in self.seen)

    @property
    def fetched(self) -> list[Seen]:
        """The requests for content or a redirect to it."""
        return [one for one in self.seen if not one.path.startswith("/api/")]

    def _note(self, request: web.Request) -> Seen:
        headers = request.headers
        seen = Seen(request.path, headers.get("Range"), headers.get("If-Range"), headers.get("Authorization"))
        self.seen.append(seen)
        return seen

    def _refusal(self, request: web.Request) -> web.Response | None:
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401, headers={"X-Error-Code": "RepoNotFound"})
        return None

    async def _list(self, request: web.Request) -> web.Response:
        self._note(request)
        await asyncio.sleep(self.list_delay)
        if self.list_status:
            return web.Response(status=self.list_status)
        if refusal := self._refusal(request):
            return refusal
        if self.unlisted or request.match_info["repo"] != "repo":
            return web.Response(status=404, headers={"X-Error-Code": "RepoNotFound"})
        siblings = [self._sibling(path, content) for path, content in self.files.items()]
        return web.json_response({"id": "owner/repo", "sha": COMMIT, "siblings": siblings})

    def _sibling(self, path: str, content: bytes) -> dict[str, Any]:
        size = self.sizes.get(path, len(content))
        entry: dict[str, Any] = {"rfilename": path, "size": size, "blobId": git_blob(content)}
        if path in self.plain:
            return entry | {"blobId": self.lies.get(path, git_blob(content))}
        sha256 = self.lies.get(path, hashlib.sha256(content).hexdigest())
        return entry | {"blobId": "0" * 40, "lfs": {"sha256": sha256, "size": size, "pointerSize": 130}}

    async def _file(self, request: web.Request) -> web.StreamResponse:
        if refusal := self._refusal(request):
            self._note(request)
            return refusal
        if self.gated:
            self._note(request)
            return web.Response(status=403, headers={"X-Error-Code": "GatedRepo"})
        target = self.redirect or (self.cdn.url + "/cdn/" + request.match_info["path"] if self.cdn else None)
        if target is not None:
            self._note(request)
            return web.Response(status=302, headers={"X-Repo-Commit": COMMIT, "Location": target})
        return await self._content(request)

    async def _content(self, request: web.Request) -> web.StreamResponse:
        seen = self._note(request)
        if self.statuses:
            return web.Response(status=self.statuses.pop(0), headers={"Retry-After": "3"})
        content = self.files.get(request.match_info["path"])
        if content is None:
            return web.Response(status=404, headers={"X-Error-Code": "EntryNotFound"})
        etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        start = self._start(seen, etag)
        if start >= len(content) and start:
            return web.Response(status=416, headers={"Content-Range": f"bytes */{len(content)}"})
        response = web.StreamResponse(status=206 if start else 200, headers={"ETag": etag})
        if start:
            response.headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        if self.chunked:
            response.enable_chunked_encoding()
        else:
            response.content_length = len(content) - start
        await response.prepare(request)
        await self._send(request, response, seen, content[start:])
        return response

    def _start(self, seen: Seen, etag: str) -> int:
        match = re.fullmatch(r"bytes=(\d+)-", seen.range or "")
        stale = seen.if_range is not None and seen.if_range != etag
        return 0 if match is None or self.ignore_range or stale else int(match[1]) + self.shift_range

    async def _send(
        self, request: web.Request, response: web.StreamResponse, seen: Seen, content: bytes
    ) -> None:
        end = self.cut_after.pop(0) if self.cut_after else len(content)
        self.serving.set()
        for at in range(0, min(end, len(content)), self.chunk):
            block = content[at : min(at + self.chunk, end)]
            try:
                await response.write(block)
            except ConnectionError:
                return
            seen.sent += len(block)
            await asyncio.sleep(self.delay)
        if end < len(content) and request.transport is not None:
            request.transport.close()

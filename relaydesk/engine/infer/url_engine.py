"""An engine somebody else runs: any OpenAI-compatible server at a URL."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

import aiohttp
from yarl import URL

from relaydesk.core.errors import LocalError, PeerError
from relaydesk.core.gateway.sse import SseParser, chunk_of
from relaydesk.engine.infer.client import REPLY_LIMIT
from relaydesk.engine.infer.connection import ERROR_BODY_LIMIT
from relaydesk.engine.infer.engine import DONE, EngineReply

_AGAIN: Final = "check that the server at its URL runs"


def parse_engine_url(text: str) -> URL:
    """A base URL such as ``http://10.0.0.7:8000/v1``. Raises `LocalError` ``bad_setting``.

    A trailing ``/v1`` is dropped, because the paths asked for bring it. Names and passwords in it are
    refused: they would end up in logs.
    """
    try:
        url = URL(text.strip())
        usable = url.scheme in ("http", "https") and bool(url.host) and url.user is None
        usable = usable and not url.query_string and not url.fragment
    except ValueError:
        usable = False
    if not usable:
        raise LocalError(
            "bad_setting",
            "an engine's URL is http://HOST[:PORT][/PATH] or https://…, without user, query or fragment",
            "give the key apart from the URL",
            param="url",
        )
    path = url.path.rstrip("/")
    return url.with_path(path[:-3] if path.endswith("/v1") else path)


class UrlStream:
    """`EngineStream` over an aiohttp response."""

    def __init__(
        self, response: aiohttp.ClientResponse, error_body: bytes, idle_timeout_s: float, ends_with_done: bool
    ) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}
        self.error_body = error_body
        self._response = response
        self._idle_timeout_s = idle_timeout_s
        self._ends_with_done = ends_with_done
        self._sse = SseParser()
        self._events: deque[bytes] = deque()
        self._ended = response.status != 200

    def relax(self) -> None:
        """Another machine's engine gains nothing from it."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while True:
            if self._events:
                event = self._events.popleft()
                if event != DONE:
                    return event
                self._ended = True
            if self._ended:
                self._response.close()
                raise StopAsyncIteration
            data = await self._read()
            if data:
                self._events.extend(map(chunk_of, self._sse.feed(data)))
                continue
            if self._ends_with_done:
                self._response.close()
                raise PeerError(
                    "engine_failed", "the engine ended its answer early", "send the request again"
                )
            self._ended = True

    async def _read(self) -> bytes:
        try:
            async with asyncio.timeout(self._idle_timeout_s):
                return await self._response.content.readany()
        except TimeoutError:
            self._response.close()
            said = f"the engine said nothing for {self._idle_timeout_s:g} s"
            raise PeerError("engine_failed", said, _AGAIN) from None
        except aiohttp.ClientError as error:
            self._response.close()
            raise _failed("broke off its answer", error) from error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._response.close()

    async def aclose(self) -> None:
        self._response.close()


class UrlEngine:
    """`Engine` at ``base_url`` with an optional bearer ``key``.

    Each request has its own connection: one that is closed is how the other side learns that its client
    left. Redirects are not followed, since the key would go along. Make it inside the loop.
    """

    def __init__(
        self,
        base_url: str,
        key: str = "",
        *,
        connect_timeout_s: float = 10.0,
        idle_timeout_s: float = 600.0,
        connector: aiohttp.BaseConnector | None = None,
    ) -> None:
        self._base = parse_engine_url(base_url)
        self._idle_timeout_s = idle_timeout_s
        self._health_timeout_s = connect_timeout_s
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._session = aiohttp.ClientSession(
            connector=connector or aiohttp.TCPConnector(force_close=True, limit=0),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=True,
            trust_env=False,
        )

    async def stream(self, path: str, body: bytes, *, ends_with_done: bool = True) -> UrlStream:
        response = await self._ask("POST", path, body, self._idle_timeout_s)
        try:
            error_body = b""
            if response.status != 200:
                error_body = await self._body(response, ERROR_BODY_LIMIT, cut=True)
            return UrlStream(response, error_body, self._idle_timeout_s, ends_with_done)
        except BaseException:
            response.close()
            raise

    async def json(self, method: str, path: str, body: bytes | None = None) -> EngineReply:
        response = await self._ask(method, path, body, self._idle_timeout_s)
        try:
            whole = await self._body(response, REPLY_LIMIT, cut=False)
        finally:
            response.close()
        headers = {name.lower(): value for name, value in response.headers.items()}
        return EngineReply(response.status, headers, whole)

    async def health(self) -> bool:
        """Whether it lists its models: the one route every such server has."""
        try:
            response = await self._ask("GET", "/v1/models", None, self._health_timeout_s)
        except PeerError:
            return False
        response.close()
        return response.status == 200

    async def aclose(self) -> None:
        await self._session.close()

    async def _ask(
        self, method: str, path: str, body: bytes | None, timeout_s: float
    ) -> aiohttp.ClientResponse:
        url = self._base.with_path(self._base.path.rstrip("/") + path)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._session.request(
                    method, url, data=body, headers=headers, allow_redirects=False
                )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _failed("cannot be reached", error) from error
        if 300 <= response.status < 400:
            response.close()
            raise PeerError(
                "engine_failed", f"the engine answers with a redirect ({response.status})", "correct its URL"
            )
        return response

    async def _body(self, response: aiohttp.ClientResponse, limit: int, *, cut: bool) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._idle_timeout_s):
                while size <= limit and (piece := await response.content.readany()):
                    parts.append(piece)
                    size += len(piece)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _failed("broke off its answer", error) from error
        if size > limit and not cut:
            raise PeerError("engine_failed", f"the engine's answer is longer than {limit} bytes")
        return b"".join(parts)[:limit]


def _failed(what: str, error: BaseException) -> PeerError:
    """No text of ``error``: it names hosts and ports, and this sentence reaches clients."""
    slow = ", having been silent for too long" if isinstance(error, TimeoutError) else ""
    return PeerError("engine_failed", f"the engine {what}{slow}", _AGAIN)

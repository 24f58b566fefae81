"""``RemoteNode``: a node behind a control socket as a `NodeApi`, for attached consoles."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from pathlib import Path
from types import TracebackType
from typing import Final

import aiohttp
import msgspec

from relaydesk.core.codec import decode, encode, fault_of, fault_view, schema_fingerprint
from relaydesk.core.commands import Access, Command, Outcome, name_of
from relaydesk.core.errors import EnvError, Fault, PeerError, raise_fault
from relaydesk.core.text import safe_text
from relaydesk.core.view.node_view import NodeView, Update
from relaydesk.core.view.sections import FaultView
from relaydesk.node_api import WatchClosedError
from relaydesk.surfaces.control import routes
from relaydesk.surfaces.control.lines import LineSplitter, LineTooLongError

CALL_TIMEOUT_S: Final = 120.0
_CONNECT_TIMEOUT_S: Final = 5.0
# Two keep-alives may be late before the node counts as lost.
_SILENCE_S: Final = routes.KEEPALIVE_S * 2.5
# A URL wants a host; the connector ignores it.
_BASE: Final = "http://localhost"


class _Error(msgspec.Struct, frozen=True):
    error: FaultView


class _Closed(msgspec.Struct, frozen=True):
    closed: str


class RemoteNode:
    """A node in another process. Make it inside a running loop and `close` it there."""

    def __init__(
        self,
        socket_path: Path,
        access: Access = Access.WRITE,
        *,
        silence_s: float = _SILENCE_S,
        call_timeout_s: float = CALL_TIMEOUT_S,
    ) -> None:
        self._path = socket_path
        self._access = access
        self._silence_s = silence_s
        self._call_timeout_s = call_timeout_s
        self._session = aiohttp.ClientSession(
            # Connecting to a unix socket costs nothing; an idle connection to a node that restarted would.
            connector=aiohttp.UnixConnector(path=str(socket_path), limit=0, force_close=True),
            headers={
                routes.SCHEMA_HEADER: schema_fingerprint(),
                routes.ACCESS_HEADER: access.value,
                "Content-Type": "application/json",
            },
            auto_decompress=False,
        )

    async def __aenter__(self) -> RemoteNode:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; watches under way end with ``lost``."""
        await self._session.close()

    @property
    def access(self) -> Access:
        return self._access

    async def snapshot(self) -> NodeView:
        status, body = await self._exchange("GET", routes.VIEWS)
        if status != 200:
            raise_fault(_refusal(status, body))
        try:
            return decode(body, NodeView)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise _unreadable(error) from None

    async def watch(self, topics: Collection[str] | None = None) -> AsyncIterator[Update]:
        params = {} if topics is None else {"topics": ",".join(topics)}
        timeout = aiohttp.ClientTimeout(sock_connect=_CONNECT_TIMEOUT_S, sock_read=self._silence_s)
        attached = False
        try:
            async with self._session.get(_BASE + routes.WATCH, params=params, timeout=timeout) as response:
                if response.status != 200:
                    raise_fault(_refusal(response.status, await response.read()))
                attached = True
                # Not StreamReader.readline: it stops at 128 KiB, which a full view with its log exceeds.
                splitter = LineSplitter()
                async for data in response.content.iter_any():
                    for line in splitter.feed(data):
                        yield _update(line)
        except LineTooLongError:
            pass
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            if not attached:
                raise self._lost(error) from None
        raise WatchClosedError("lost")

    async def call(self, command: Command) -> Outcome:
        path = f"{routes.COMMANDS}/{name_of(command)}"
        status, body = await self._exchange("POST", path, encode(command))
        try:
            return decode(body, Outcome)
        except (msgspec.MsgspecError, RecursionError):
            return Outcome(ok=False, fault=fault_view(_refusal(status, body)))

    async def _exchange(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        timeout = aiohttp.ClientTimeout(total=self._call_timeout_s, sock_connect=_CONNECT_TIMEOUT_S)
        try:
            async with self._session.request(method, _BASE + path, data=body, timeout=timeout) as response:
                return response.status, await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._lost(error) from None

    def _lost(self, error: Exception) -> EnvError:
        cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
        if isinstance(cause, PermissionError):
            return EnvError(
                "refused", f"the node at {self._path} belongs to another user", "try `sudo relaydesk console`"
            )
        if isinstance(cause, FileNotFoundError | ConnectionRefusedError | NotADirectoryError):
            return EnvError("no_node", f"no node answers at {self._path}", "start one with `relaydesk serve`")
        what = "did not answer in time" if isinstance(error, TimeoutError) else "went away"
        return EnvError("no_node", f"the node at {self._path} {what}", "see whether it still runs")


def _update(line: bytes) -> Update:
    """A line of a watch. Raises `WatchClosedError` where it is the last one or makes no sense."""
    try:
        if line.startswith(routes.CLOSED_PREFIX):
            raise WatchClosedError(decode(line, _Closed).closed)
        return decode(line, Update)
    except (msgspec.MsgspecError, RecursionError):
        raise WatchClosedError("lost") from None


def _refusal(status: int, body: bytes) -> Fault:
    try:
        return fault_of(decode(body, _Error).error)
    except (msgspec.MsgspecError, RecursionError):
        return Fault("internal_error", f"the node answered {status} without a reason", "see its log")


def _unreadable(error: Exception) -> PeerError:
    return PeerError(
        "internal_error",
        f"the node's answer cannot be read ({safe_text(str(error), 160)})",
        "restart the node and the console, so that both run the version installed now",
    )

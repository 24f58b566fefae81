"""The control socket's server: HTTP over a unix socket for the CLI and attached consoles.

The socket's mode and the peer's user id are the whole access control: whoever may connect may do
everything, unless they ask to be read-only.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import web

from relaydesk.core.codec import convert, fault_view, schema_fingerprint
from relaydesk.core.commands import COMMANDS, Command, Outcome, RotateDefaultKey, name_of, read_only_fault
from relaydesk.core.errors import Fault, FaultError, LocalError
from relaydesk.core.ports import Clock
from relaydesk.core.view.node_view import SECTIONS
from relaydesk.core.view.status import status_document
from relaydesk.engine.tasks import spawn
from relaydesk.node_api import NodeApi
from relaydesk.surfaces.control import keys, models, routes
from relaydesk.surfaces.control.answers import answer, failed, outcome_answer, read_object, refuse_unknown
from relaydesk.surfaces.control.bind import SocketFile
from relaydesk.surfaces.control.peer import peer_uid
from relaydesk.surfaces.control.watching import stream

_log: Final = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# A peer that takes nothing for this long is cut off.
STALL_S: Final = 30.0
# How long a stop waits for answers under way.
_SHUTDOWN_S: Final = 5.0
_OUR_OWN: Final = (routes.WATCH, routes.VIEWS, routes.COMMANDS)

_NO_POOL: Final = "this version of relaydesk has no pool members yet"
_NOT_BUILT: Final = (
    ("GET", routes.NODES, _NO_POOL),
    ("PATCH", routes.NODES, _NO_POOL),
    ("DELETE", routes.NODES, _NO_POOL),
    ("PATCH", routes.NODES + "/{id}", _NO_POOL),
    ("DELETE", routes.NODES + "/{id}", _NO_POOL),
    ("POST", routes.NODES + "/token", _NO_POOL),
    ("POST", routes.NODES + "/{id}/wipe", _NO_POOL),
)


class ControlServer:
    """Serves one node on one socket. The caller holds the lock on the state directory.

    ``allowed_uids`` are the users that may connect: by default the node's own and root.
    """

    def __init__(
        self,
        node: NodeApi,
        socket_path: Path,
        clock: Clock,
        *,
        allowed_uids: Collection[int] | None = None,
        keepalive_s: float = routes.KEEPALIVE_S,
        stall_s: float = STALL_S,
    ) -> None:
        self._node = node
        self._path = socket_path
        self._clock = clock
        self._allowed = frozenset(allowed_uids if allowed_uids is not None else (os.geteuid(), 0))
        self._keepalive_s = keepalive_s
        self._stall_s = stall_s
        self._closing = asyncio.Event()
        self._commands: set[asyncio.Task[Outcome]] = set()
        self._runner: web.AppRunner | None = None
        self._file: SocketFile | None = None

    async def start(self) -> None:
        """Bind and serve. Raises `EnvError` where the socket cannot be made."""
        app = web.Application(middlewares=[self._guard], client_max_size=routes.BODY_LIMIT)
        self._add_routes(app.router)
        runner = web.AppRunner(
            app,
            handle_signals=False,
            handler_cancellation=True,
            access_log=None,
            shutdown_timeout=_SHUTDOWN_S,
            # Nothing that uses this socket compresses; a damaged or huge compressed body is no JSON.
            auto_decompress=False,
        )
        await runner.setup()
        try:
            self._file = SocketFile(self._path)
            await _BoundSite(runner, self._file).start()
        except BaseException:
            await runner.cleanup()
            raise
        self._closing.clear()
        self._runner = runner

    async def close(self) -> None:
        """End watches with ``stopped``, let answers under way end, remove the socket."""
        self._closing.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        if self._commands:
            await asyncio.wait(self._commands, timeout=_SHUTDOWN_S)
        if self._file is not None:
            self._file.remove()
            self._file = None

    def _add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get(routes.STATUS, self._status, allow_head=False)
        router.add_get(routes.MODELS, self._models, allow_head=False)
        router.add_post(routes.MODELS, self._add_model)
        for path in (routes.MODELS, routes.MODELS + "/{name:.+}"):
            router.add_patch(path, self._set_model)
            router.add_delete(path, self._remove_model)
        router.add_post(routes.ROTATE_DEFAULT_KEY, self._rotate_default_key)
        router.add_post(routes.KEYS, self._add_key)
        for path in (routes.KEYS, routes.KEYS + "/{name:.+}"):
            router.add_patch(path, self._set_key)
            router.add_delete(path, self._remove_key)
        router.add_get(routes.WATCH, self._watch, allow_head=False)
        router.add_get(routes.VIEWS, self._view, allow_head=False)
        router.add_get(routes.VIEWS + "/{section}", self._view, allow_head=False)
        router.add_post(routes.COMMANDS + "/{name}", self._command)
        for method, path, sentence in _NOT_BUILT:
            router.add_route(method, path, _not_built(sentence))

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._admit(request)
            return await handler(request)
        except FaultError as error:
            return failed(error.fault)
        except web.HTTPException as error:
            return failed(_http_fault(request, error))
        except Exception:
            _log.exception("the control route %s %s failed", request.method, request.path)
            return failed(Fault("internal_error", "the request failed inside relaydesk", "see the log"))

    def _admit(self, request: web.Request) -> None:
        transport = request.transport
        uid = peer_uid(transport.get_extra_info("socket")) if transport is not None else None
        if uid not in self._allowed:
            raise LocalError(
                "refused",
                "this control socket serves only the node's own user and root",
                "run the command as that user or with sudo",
            )
        schema = request.headers.get(routes.SCHEMA_HEADER)
        if schema not in (None, schema_fingerprint()) and request.path.startswith(_OUR_OWN):
            raise LocalError(
                "conflict",
                "console and node are different versions of relaydesk",
                "restart the node and the console, so that both run the version installed now",
            )

    async def _status(self, _request: web.Request) -> web.Response:
        return answer(status_document(await self._node.snapshot(), self._clock.wall_ms()))

    async def _models(self, _request: web.Request) -> web.Response:
        document = status_document(await self._node.snapshot(), self._clock.wall_ms())
        return answer({name: document[name] for name in ("models", "memory", "incomplete")})

    async def _add_model(self, request: web.Request) -> web.Response:
        return await self._carried_out(request, models.to_add(await read_object(request)))

    async def _set_model(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "")
        return await self._carried_out(request, models.to_set(name, await read_object(request)))

    async def _remove_model(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "")
        return await self._carried_out(request, models.to_remove(name, await read_object(request)))

    async def _add_key(self, request: web.Request) -> web.Response:
        return await self._carried_out(request, keys.to_add(await read_object(request)))

    async def _set_key(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "")
        return await self._carried_out(request, keys.to_set(name, await read_object(request)))

    async def _remove_key(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "")
        return await self._carried_out(request, keys.to_remove(name, await read_object(request)))

    async def _rotate_default_key(self, request: web.Request) -> web.Response:
        refuse_unknown(await read_object(request), frozenset(), "a rotation")
        return await self._carried_out(request, RotateDefaultKey())

    async def _command(self, request: web.Request) -> web.Response:
        return await self._carried_out(
            request, _to_command(request.match_info["name"], await read_object(request))
        )

    async def _view(self, request: web.Request) -> web.Response:
        section = request.match_info.get("section")
        if section is not None and section not in SECTIONS:
            raise LocalError(
                "not_found", f"there is no section {section!r}", f"choose out of {', '.join(SECTIONS)}"
            )
        view = await self._node.snapshot()
        return answer(view if section is None else getattr(view, section))

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        asked = request.query.get("topics")
        topics = None if asked is None else [name for name in asked.split(",") if name]
        return await stream(
            request,
            self._node.watch(topics),
            self._closing,
            keepalive_s=self._keepalive_s,
            stall_s=self._stall_s,
        )

    async def _carried_out(self, request: web.Request, command: Command) -> web.Response:
        if _is_read_only(request) and (fault := read_only_fault(command)) is not None:
            return outcome_answer(Outcome(ok=False, fault=fault_view(fault)))
        # Once begun, a command runs to its end: who asked may leave, but nothing stays half-done.
        task = spawn(self._node.call(command), name=f"control: {name_of(command)}")
        self._commands.add(task)
        task.add_done_callback(self._commands.discard)
        return outcome_answer(await asyncio.shield(task))


class _BoundSite(web.BaseSite):
    """A site on a socket that is bound already, so that its mode was right from the start."""

    __slots__ = ("_file",)

    def __init__(self, runner: web.AppRunner, file: SocketFile) -> None:
        super().__init__(runner)
        self._file = file

    @property
    def name(self) -> str:
        return f"http://unix:{self._file.path}:"

    async def start(self) -> None:
        await super().start()
        server = self._runner.server
        assert server is not None
        self._server = await asyncio.get_running_loop().create_unix_server(server, sock=self._file.sock)


def _not_built(sentence: str) -> Handler:
    async def handler(_request: web.Request) -> web.StreamResponse:
        return failed(Fault("not_built", sentence))

    return handler


def _is_read_only(request: web.Request) -> bool:
    # An access that is asked for and not known counts as the smaller one.
    return request.headers.get(routes.ACCESS_HEADER, "write").lower() != "write"


def _to_command(name: str, body: dict[str, Any]) -> Command:
    kind = COMMANDS.get(name)
    if kind is None:
        raise LocalError("not_found", f"there is no command {name!r}", f"choose out of {', '.join(COMMANDS)}")
    refuse_unknown(body, frozenset(kind.__struct_fields__) | {"command"}, name)
    try:
        return convert({"command": name, **body}, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise LocalError("invalid_request", f"{name} cannot be read: {error}") from None


def _http_fault(request: web.Request, error: web.HTTPException) -> Fault:
    if error.status == 413:
        return Fault("request_too_large", f"the body is longer than {routes.BODY_LIMIT} bytes")
    if error.status == 405:
        return Fault("method_not_allowed", f"{request.path} does not take {request.method}")
    if error.status == 404:
        return Fault("not_found", f"the control socket has no route {request.path}")
    return Fault("invalid_request", f"the request cannot be read: {error.reason}")

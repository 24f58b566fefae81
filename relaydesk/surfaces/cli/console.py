"""``relaydesk console``, and what ``relaydesk`` alone does: attach to a running node, else embed one."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.surfaces.cli.attach import attach_option, find_node

if TYPE_CHECKING:
    from relaydesk.config.load import Loaded
    from relaydesk.config.paths import Paths
    from relaydesk.core.commands import Access
    from relaydesk.engine.logbook import LogBook
    from relaydesk.engine.node import Node
    from relaydesk.node_api import NodeApi
    from relaydesk.surfaces.console.app import ConsoleApp
    from relaydesk.surfaces.console.session import Session
    from relaydesk.surfaces.control.client import RemoteNode
    from relaydesk.surfaces.host import Host

THEMES: Final = ("dark", "light", "terminal")


@click.command()
@attach_option
@click.option("--read-only", is_flag=True, help="Look, change nothing.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters alone.")
@click.option("--theme", type=click.Choice(THEMES), help="Colours. [default: as last time, else dark]")
@click.option(
    "--keep-serving",
    is_flag=True,
    help="Let a node that runs in this console go on when the terminal goes away or the console fails.",
)
@click.pass_context
def console(
    ctx: click.Context,
    attach: Path | None,
    read_only: bool,
    ascii_only: bool,
    theme: str | None,
    keep_serving: bool,
) -> None:
    """The console: on the node that is running, else on one of its own that runs in it.

    It looks for a node at --attach, RELAY_SOCKET, the own state directory and the system's service, in that
    order. Leaving the console of a node that runs elsewhere leaves that node alone.
    """
    if not has_terminal():
        _no_terminal(ctx)
        return
    try:
        socket = find_node(attach).socket
    except EnvError as error:
        if attach is not None or error.fault.code != "no_node":
            raise
        if read_only:
            # One that may change nothing has no business starting a node either.
            raise EnvError(
                "no_node",
                "no node runs here, so a read-only console has nothing to look at",
                "start one with `relaydesk serve`, or leave out --read-only",
            ) from None
        socket = None
    front = _Front(ctx.find_object(Path), read_only, ascii_only, theme)
    if socket is not None:
        code = _run(_attached(front, socket))
    else:
        code = _run(_Embedded(front, keep_serving).run())
    # Not by returning: `relaydesk` without a verb invokes this and looks at nothing.
    ctx.exit(code)


def has_terminal() -> bool:
    """Whether a console can be drawn: it is typed on one stream and drawn on another."""
    return sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def attach(socket: Path, config: Path | None) -> int:
    """Open the console on the node behind ``socket`` until it is left; its exit code."""
    return _run(_attached(_Front(config, False, False, None), socket))


def _run(work: Coroutine[Any, Any, int]) -> int:
    import uvloop

    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    return uvloop.run(work)


def _no_terminal(ctx: click.Context) -> None:
    if ctx.parent is not None and ctx.parent.invoked_subcommand is None:
        click.echo(ctx.parent.get_help())
        return
    raise LocalError("invalid_request", "the console needs a terminal", "`relaydesk status` needs none")


class _Front:
    """What both ways of opening a console share: settings, log, looks."""

    def __init__(self, config: Path | None, read_only: bool, ascii_only: bool, theme: str | None) -> None:
        from relaydesk.config.load import load
        from relaydesk.config.paths import resolve
        from relaydesk.core.commands import Access
        from relaydesk.engine.clock import SystemClock
        from relaydesk.engine.logbook import LogBook, install

        self.loaded: Loaded = load(config=config)
        self.paths: Paths = resolve(self.loaded.settings)
        self.access: Access = Access.READ if read_only else Access.WRITE
        self.clock = SystemClock()
        self.book: LogBook = LogBook()
        # Nothing on stderr: the console draws there.
        install(self.book, level=getattr(logging, self.loaded.settings.log_level.upper()), stderr=False)
        self._read_only = read_only
        self._ascii = ascii_only or "utf" not in (sys.stderr.encoding or "").lower()
        self._theme = theme

    def session(self, connect: Callable[[], Awaitable[NodeApi]], stop: Callable[[], None] | None) -> Session:
        """The session of a console."""
        from relaydesk.config.paths import config_file
        from relaydesk.surfaces.console import keymap, prefs
        from relaydesk.surfaces.console.session import Session

        keys = keymap.load_keymap(config_file(os.environ).with_name(keymap.FILE_NAME))
        kept = self.paths.state / prefs.FILE_NAME
        looks = prefs.load_prefs(kept)
        if self._theme is not None:
            looks = replace(looks, theme=self._theme)
        return Session(
            connect,
            self.clock,
            self._read_only,
            stop,
            self._ascii,
            keys,
            looks,
            lambda chosen: prefs.save_prefs(kept, chosen),
        )

    def report(self, app: ConsoleApp) -> int:
        """What a console that failed leaves behind: a sentence, and where the trace is."""
        if app.crash is None:
            return 0
        from relaydesk.surfaces.console.run import keep_trace

        where = keep_trace(app.crash, self.paths.state)
        if where is None:
            import traceback

            traceback.print_exception(app.crash)
        place = f": the trace is in {where}" if where is not None else ""
        click.echo(f"relaydesk: the console failed ({type(app.crash).__name__}){place}", err=True)
        return 1


async def _attached(front: _Front, socket: Path) -> int:
    from relaydesk.surfaces.console.app import ConsoleApp
    from relaydesk.surfaces.console.run import run_console

    nodes: list[RemoteNode] = []

    async def connect() -> NodeApi:
        # Loaded while the first picture is on the screen already.
        await asyncio.to_thread(__import__, "relaydesk.surfaces.control.client")
        from relaydesk.surfaces.control.client import RemoteNode

        nodes.append(RemoteNode(socket, front.access))
        return nodes[-1]

    app = ConsoleApp(front.session(connect, None))
    try:
        await run_console(app, dict.fromkeys((signal.SIGTERM, signal.SIGINT, signal.SIGHUP), app.exit))
    finally:
        for node in nodes:
            await node.close()
    return front.report(app)


class _Embedded:
    """A node and its console in one loop. Whichever ends first, the other is told."""

    def __init__(self, front: _Front, keep_serving: bool) -> None:
        self._front = front
        self._keep_serving = keep_serving
        self._host: Host | None = None
        self._hosting: asyncio.Task[None] | None = None
        self._stopped_early = False

    async def run(self) -> int:
        from relaydesk.surfaces.console.app import ConsoleApp
        from relaydesk.surfaces.console.run import run_console

        self._ready: asyncio.Future[NodeApi] = asyncio.get_running_loop().create_future()
        self._app = ConsoleApp(self._front.session(self._connect, self._stop))
        stop, gone = self._stop, self._terminal_gone
        handlers = {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGHUP: gone}
        await run_console(self._app, handlers)
        code = self._front.report(self._app)
        if self._hosting is not None:
            await self._end(self._hosting)
        return code

    def _connect(self) -> asyncio.Future[NodeApi]:
        from relaydesk.engine.tasks import spawn

        if self._hosting is None:
            self._hosting = spawn(self._serve(), name="node")
            self._hosting.add_done_callback(self._node_ended)
        return asyncio.shield(self._ready)

    async def _serve(self) -> None:
        # The heavy half of the program is loaded while the first picture is on the screen already.
        await asyncio.to_thread(__import__, "relaydesk.surfaces.host")
        from relaydesk.engine.clock import SystemRng
        from relaydesk.surfaces.host import Host

        front = self._front
        self._host = Host(front.loaded, front.paths, front.book, front.clock, SystemRng(), dict(os.environ))
        if not self._stopped_early:
            await self._host.run(self._opened)

    def _opened(self, node: Node, _first_key: str) -> None:
        from relaydesk.core.commands import Access
        from relaydesk.engine.collector import Collector

        api: NodeApi = node.api.read_only() if self._front.access is Access.READ else node.api
        self._ready.set_result(api)
        node.supervisor.add(Collector(node.clock, lambda: node.journal.in_flight == 0))

    def _stop(self) -> None:
        """Drain and stop; a second call stops at once."""
        self._app.stopping = True
        if self._host is None:
            self._stopped_early = True
            self._app.exit()
        else:
            self._host.stop()

    def _terminal_gone(self) -> None:
        if not self._keep_serving:
            self._stop()
        self._app.exit()

    def _node_ended(self, hosting: asyncio.Task[None]) -> None:
        if not hosting.cancelled() and hosting.exception() is not None and not self._ready.done():
            self._ready.cancel()
        self._app.exit()

    async def _end(self, hosting: asyncio.Task[None]) -> None:
        """The console is closed; the node drains and stops, or goes on where that was asked for."""
        if not hosting.done():
            if self._keep_serving and not self._app.stopping:
                note = f"the node goes on without its console: `kill -TERM {os.getpid()}` stops it"
                _tell(note)
                loop = asyncio.get_running_loop()
                loop.add_signal_handler(signal.SIGHUP, lambda: None)
            elif not self._app.stopping:
                self._stop()
        await hosting


def _tell(note: str) -> None:
    try:
        click.echo(f"relaydesk: {note}", err=True)
    except OSError:
        pass  # the terminal is gone

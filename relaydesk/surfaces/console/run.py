"""Running the console on a terminal: signals, crashes, and a terminal left clean."""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from relaydesk.surfaces.console.app import ConsoleApp
from relaydesk.surfaces.console.terminal import OwnTerminal

CRASH_FILE: Final = "console-crash.txt"

Handlers = Mapping[signal.Signals, Callable[[], None]]


async def run_console(app: ConsoleApp, handlers: Handlers) -> None:
    """Run ``app`` until it ends; ``app.crash`` says whether by itself.

    Textual installs nothing for TERM and HUP, which would leave the alternate screen and the mouse on.
    """
    loop = asyncio.get_running_loop()
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    # From Python 3.12 on Textual sets an eager factory and leaves it: the node must not go on with it.
    factory = loop.get_task_factory()
    try:
        with OwnTerminal():
            await app.run_async()
    finally:
        loop.set_task_factory(factory)


def keep_trace(error: BaseException, directory: Path) -> Path | None:
    """Write where the console failed to a private file; None where that cannot be done.

    Without the values of variables: there may be secrets among them.
    """
    path = directory / CRASH_FILE
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("".join(traceback.format_exception(error)))
    except OSError:
        return None
    return path

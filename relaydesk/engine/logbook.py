"""The node's own log: to stderr where it runs headless, and always the newest lines for the console."""

from __future__ import annotations

import logging
import sys
from collections import deque
from typing import Final

from relaydesk.core.events import LogWritten
from relaydesk.core.text import safe_text
from relaydesk.core.view.sections import LogLine, LogView
from relaydesk.engine.bus import Bus

KEPT: Final = 500
_LINE_LIMIT: Final = 1000


class LogBook(logging.Handler):
    """Keeps the newest log lines, made safe to show. Records may come from any thread."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._lines: deque[LogLine] = deque(maxlen=KEPT)
        self._bus: Bus | None = None

    def attach(self, bus: Bus) -> None:
        """Publish `LogWritten` for each line from now on."""
        self._bus = bus

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
            if record.exc_info and record.exc_info[1] is not None:
                text = f"{text}: {record.exc_info[1]!r}"
            source = record.name.removeprefix("relaydesk.")
            line = LogLine(
                int(record.created * 1000), record.levelname.lower(), source, safe_text(text, _LINE_LIMIT)
            )
        except Exception:
            self.handleError(record)
            return
        self._lines.append(line)
        # Marking a section stale is a set insertion: safe from another thread, and the next tick sees it.
        if self._bus is not None:
            self._bus.publish(LogWritten())

    def view(self) -> LogView:
        """The newest lines, oldest first."""
        return LogView(tuple(self._lines))


class _SafeFormatter(logging.Formatter):
    """One safe line a record; a traceback of ours follows on lines of its own, indented.

    ``with_time`` is for a terminal; a service manager stamps its lines itself.
    """

    def __init__(self, *, with_time: bool) -> None:
        super().__init__()
        self._with_time = with_time

    def format(self, record: logging.LogRecord) -> str:
        source = record.name.removeprefix("relaydesk.")
        line = f"{record.levelname.lower()} {source}: {safe_text(record.getMessage(), _LINE_LIMIT)}"
        if self._with_time:
            line = f"{self.formatTime(record, '%H:%M:%S')} {line}"
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line += "".join(f"\n    {safe_text(part, _LINE_LIMIT)}" for part in trace.splitlines())
        return line


def install(book: LogBook, *, level: int, stderr: bool) -> None:
    """Send the program's log to ``book`` and, headless, to stderr."""
    root = logging.getLogger()
    for handler in tuple(root.handlers):
        root.removeHandler(handler)
    root.setLevel(level)
    root.addHandler(book)
    if stderr:
        stream = logging.StreamHandler(sys.stderr)
        stream.setFormatter(_SafeFormatter(with_time=sys.stderr.isatty()))
        root.addHandler(stream)
    # aiohttp's access log would put every path on a line of its own; the request journal says more.
    logging.getLogger("aiohttp.access").disabled = True
    logging.getLogger("asyncio").setLevel(logging.WARNING)

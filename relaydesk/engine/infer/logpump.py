"""Empties a worker's log pipe without the loop noticing: in turns, filtered, the last lines kept."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from typing import Final

from relaydesk.core.text import SafeText
from relaydesk.engine.infer.logfilter import LogEvent, LogFilter

KEPT_LINES: Final = 40
_TURN_S: Final = 0.02
_READ: Final = 32 * 1024
_FLOOD_READS: Final = 16


class LogPump:
    """Reads ``fd`` (owned from here on) at most every 20 ms.

    A turn looks at the first 32 KiB and throws the next 512 KiB away unseen: an engine that prints for ever
    costs a bounded share of the loop, no memory, and is not held up itself below some 25 MB/s.
    """

    def __init__(self, fd: int, keep: LogFilter, on_event: Callable[[LogEvent], None]) -> None:
        self.lines: deque[SafeText] = deque(maxlen=KEPT_LINES)
        self._fd = fd
        self._keep = keep
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._turn: asyncio.TimerHandle | None = None
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._readable)

    def finish(self) -> None:
        """The process is gone: take what it left in the pipe, and close."""
        if self._fd >= 0 and self._read():
            self._close()

    def _readable(self) -> None:
        self._loop.remove_reader(self._fd)
        if self._read():
            self._turn = self._loop.call_later(_TURN_S, self._listen)

    def _listen(self) -> None:
        self._turn = None
        self._loop.add_reader(self._fd, self._readable)

    def _read(self) -> bool:
        """One turn; False at the end of the pipe, which is then closed."""
        for turn in range(_FLOOD_READS + 1):
            try:
                data = os.read(self._fd, _READ)
            except BlockingIOError:
                return True
            except OSError:
                data = b""
            if not data:
                self._close()
                return False
            if turn:
                self._keep.gap()
                continue
            for event in self._keep.feed(data):
                if event.kind != "stage":
                    self.lines.append(event.text)
                self._on_event(event)
            if len(data) < _READ:
                return True
        return True

    def _close(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
        self._fd = -1

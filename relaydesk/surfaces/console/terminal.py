"""The terminal for the console alone, and given back as it was.

Textual draws on file descriptor 2. So while the console runs, 1 and 2 lead into a pipe, and it draws on a
private copy: what a library, a child or a late log handler writes reaches the log and never the screen.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import sys
from types import TracebackType
from typing import Final, Self

from relaydesk.core.text import safe_text

_log: Final = logging.getLogger(__name__)

_READ_SIZE: Final = 65_536
# One line without an end is not worth more.
_LINE_LIMIT: Final = 8_192


class TerminalFile(io.TextIOWrapper):
    """A terminal that may go away: what cannot be written any more is dropped.

    Textual writes from a thread with a bounded queue; an error there would end the thread and, once the queue
    is full, stop the loop for good.
    """

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            pass

    def close(self) -> None:
        try:
            super().close()
        except OSError:
            pass


class OwnTerminal:
    """Holds the terminal from ``with`` to its end. Use it inside a running loop."""

    def __init__(self) -> None:
        self._saved: list[int] = []
        self._pipe = -1
        self._rest = b""

    def __enter__(self) -> Self:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self._streams = (sys.__stdout__, sys.__stderr__)
        self._saved = [os.dup(1), os.dup(2)]
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        private = os.fdopen(os.dup(2), "wb", buffering=_READ_SIZE)
        self._file = TerminalFile(private, encoding=encoding, errors="replace", newline="")
        self._pipe, write_end = os.pipe()
        # A flood is lost rather than stopping whoever writes it: that may be the loop's own thread.
        os.set_blocking(self._pipe, False)
        os.set_blocking(write_end, False)
        os.dup2(write_end, 1)
        os.dup2(write_end, 2)
        os.close(write_end)
        # Textual asks the one for the size and draws on the other.
        sys.__stdout__ = sys.__stderr__ = self._file  # type: ignore[misc]
        asyncio.get_running_loop().add_reader(self._pipe, self._read)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.flush()
        asyncio.get_running_loop().remove_reader(self._pipe)
        for number, saved in enumerate(self._saved, 1):
            os.dup2(saved, number)
            os.close(saved)
        sys.__stdout__, sys.__stderr__ = self._streams  # type: ignore[misc]
        self._file.close()
        self._read()
        os.close(self._pipe)

    def _read(self) -> None:
        try:
            data = os.read(self._pipe, _READ_SIZE)
        except OSError:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LINE_LIMIT or not data:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            text = safe_text(line.decode("utf-8", "replace"), 1000)
            if text:
                _log.warning("written past the log: %s", text)

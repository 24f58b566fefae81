"""The console on a terminal of the bench's own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self, TypeVar

T = TypeVar("T")

SIZE: Final = (120, 36)
_START_S: Final = 30.0
_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\].*?(?:\x07|\x1b\\)|[@-Z\\-_=>])", re.S)


class Terminal:
    """``relaydesk console ARGS`` on a pseudo-terminal; a thread takes what it prints, with the time."""

    def __init__(self, environment: Mapping[str, str], *args: str, size: tuple[int, int] = SIZE) -> None:
        self._environment = environment
        self._args = args
        self._size = size
        self._news = threading.Condition()
        self._text = ""
        self._at = 0.0

    def __enter__(self) -> Self:
        self._master, slave = pty.openpty()
        self.resize(*self._size)
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "relaydesk", "console", *self._args],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**self._environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reader.join(5)
        os.close(self._master)

    def resize(self, columns: int, rows: int) -> None:
        """Give it another size."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: str) -> float:
        """Type, and forget what was printed before; when that was, by `time.perf_counter`."""
        with self._news:
            self._text = ""
        pressed = time.perf_counter()
        os.write(self._master, keys.encode())
        return pressed

    def wait(self, shown: Callable[[str], bool], timeout_s: float = _START_S) -> float:
        """When what was printed since the last key first satisfied ``shown``: `time.perf_counter`."""
        deadline = time.monotonic() + timeout_s
        with self._news:
            while not shown(self._text):
                if not self._news.wait(deadline - time.monotonic()):
                    raise RuntimeError(f"the console never showed it; last: {plain(self._text)[-300:]!r}")
            return self._at

    def seen(self, what: Callable[[str], T]) -> T:
        """What is to be seen in what was printed since the last key."""
        with self._news:
            return what(self._text)

    def wait_for(self, text: str) -> float:
        """When a text was printed; escapes within it are overlooked."""
        return self.wait(lambda printed: text in plain(printed))

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:
                return
            at = time.perf_counter()
            if not data:
                return
            with self._news:
                self._text, self._at = self._text + data.decode("utf-8", "replace"), at
                self._news.notify_all()


def plain(printed: str) -> str:
    """What was printed, without escapes."""
    return _ESCAPE.sub("", printed)


def run_s(pid: int) -> float:
    """Processor seconds of one process, to the nanosecond: `cpu_s` counts in hundredths."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in tasks) / 1e9


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)

"""The program on a terminal of its own: what a person would type, what the terminal would get."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

# What must be off again when the program has ended: (switched on, switched off).
MODES = {
    "alternate screen": ("\x1b[?1049h", "\x1b[?1049l"),
    "mouse": ("\x1b[?1000h", "\x1b[?1000l"),
    "mouse motion": ("\x1b[?1003h", "\x1b[?1003l"),
    "mouse format": ("\x1b[?1006h", "\x1b[?1006l"),
    "paste": ("\x1b[?2004h", "\x1b[?2004l"),
    "focus": ("\x1b[?1004h", "\x1b[?1004l"),
    "cursor": ("\x1b[?25l", "\x1b[?25h"),
    "line wrap": ("\x1b[?7l", "\x1b[?7h"),
}
PROGRAM = (
    "import sys; from relaydesk.surfaces.cli.main import run; sys.exit(run(['relaydesk', *sys.argv[1:]]))"
)
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\].*?(?:\x07|\x1b\\)|[@-Z\\-_=>])", re.S)


class PtyConsole:
    """``relaydesk ARGS`` on a pseudo-terminal, as its session's leader. ``before`` is Python run first."""

    def __init__(
        self, state: Path, *args: str, size: tuple[int, int] = (80, 24), before: str = "", **env: str
    ) -> None:
        self.started = time.monotonic()
        self.output = ""
        self._state = state
        self.master, slave = pty.openpty()
        self.resize(*size)
        self.modes_before = termios.tcgetattr(slave)
        full = {name: value for name, value in os.environ.items() if not name.startswith("RELAY_")}
        full |= {
            "TERM": "xterm-256color",
            "RELAY_STATE_DIR": str(state),
            "RELAY_LISTEN": "127.0.0.1:0",
            "RELAY_V1_TLS": "off",
            "XDG_RUNTIME_DIR": str(state),
            "TZ": "UTC",
            **env,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"{before}\n{PROGRAM}", *args],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=full,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        self._slave = slave

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for handle in (self.master, self._slave):
            if handle >= 0:
                os.close(handle)

    @property
    def text(self) -> str:
        """What was printed so far, without escapes. Not a screen: later prints follow earlier ones."""
        return _ESCAPE.sub("", self.output)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size; the kernel tells the program."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self.master, keys.encode())

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program alone."""
        self.process.send_signal(number)

    def hang_up(self) -> None:
        """The terminal goes away: the kernel sends HUP to its session."""
        os.close(self._slave)
        os.close(self.master)
        self._slave = self.master = -1

    def wait_for(self, text: str, timeout_s: float = 15.0, *, since: int = 0) -> float:
        """Wait until ``text`` was printed after position ``since`` of `text`; seconds from the start."""
        deadline = time.monotonic() + timeout_s
        while text not in self.text[since:]:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} never came; got:\n{self.text[-2000:]}"
            self._read(min(left, 0.1))
        return time.monotonic() - self.started

    def end(self, timeout_s: float = 20.0) -> int:
        """Wait for the program's end, reading all it prints; its exit code."""
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it does not end; got:\n{self.text[-2000:]}"
            self._read(0.05)
        while self._read(0.05):
            pass
        return self.process.returncode

    def left_on(self) -> list[str]:
        """Modes of the terminal that were switched on and not off again."""
        wrong = [name for name, (on, off) in MODES.items() if self.output.rfind(on) > self.output.rfind(off)]
        if self._slave >= 0 and _plain(termios.tcgetattr(self._slave)) != _plain(self.modes_before):
            wrong.append("line discipline")
        return wrong

    def _read(self, timeout_s: float) -> bool:
        if self.master < 0:
            time.sleep(timeout_s)
            return False
        ready, _, _ = select.select([self.master], [], [], timeout_s)
        if not ready:
            return False
        data = os.read(self.master, 1 << 16)
        self.output += data.decode("utf-8", "replace")
        return bool(data)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _plain(attributes: list[Any]) -> list[Any]:
    return attributes[:6]

"""A node's watch written down from outside, as `scripted.read_recording` reads it.

Blocking, in a thread of its own: it is a client beside a node, like the demo that uses it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from relaydesk.core.errors import EnvError, FaultError
from relaydesk.surfaces.control import light

_FIRST_S: Final = 10.0
_LAST_S: Final = 20.0


class Recording:
    """Writes the watch of the node behind ``socket`` to a file, from entering it until the node ends.

    ``mono`` gives seconds that only go forward. `keep` adds what the node answered to a command, which no
    watch says: under ``answers`` of a frame, where whoever replays the recording may look for it.
    """

    def __init__(self, file: BinaryIO, socket: Path, mono: Callable[[], float]) -> None:
        self._file = file
        self._socket = socket
        self._mono = mono
        self._start = mono()
        self._seq = 0
        self._lock = threading.Lock()
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="recording", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._begun.wait(_FIRST_S):
            raise EnvError("no_node", "the node sends nothing to record", "look at its log")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the last line: to be left once the node has been told to end."""
        self._thread.join(_LAST_S)

    def keep(self, asked: str, answer: Any) -> None:
        """Write down an answer; ``asked`` is the command's name and its subject."""
        with self._lock:
            self._write({"seq": self._seq}, answers={asked: answer})

    def _watch(self) -> None:
        try:
            for line in light.lines(self._socket, "/watch"):
                update = json.loads(line) if line.strip() else {}
                if "seq" not in update:
                    continue
                with self._lock:
                    self._seq = update["seq"]
                    self._write(update)
                self._begun.set()
        except (FaultError, OSError, ValueError):
            return  # The node is gone, or the file: what was written stands.

    def _write(self, update: dict[str, Any], **more: Any) -> None:
        frame = {"at_ms": int((self._mono() - self._start) * 1000), "update": update, **more}
        self._file.write(json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        self._file.flush()

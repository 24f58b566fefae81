"""What requests used, written down at once: one line each, appended to a file.

A line is with the system when `append` returns, so that killing the process loses nothing; it is not synced
to the disk, so that a request waits for no disk. The database takes the lines over about once a second
(`store/usage.py`), after which they are dropped here.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from relaydesk.store.files import file_error

_ENCODER: Final = msgspec.json.Encoder()


class UsageEntry(msgspec.Struct, frozen=True, array_like=True):
    """One settled request, or a change of what a key has spent: then ``credit`` is in microunits and not 0.

    ``number`` counts up; ``day`` is in days since 1970 (UTC).
    """

    number: int
    key: str
    day: int
    prompt: int
    completion: int
    credit: int = 0


_DECODER: Final = msgspec.json.Decoder(UsageEntry)


class UsageLog:
    """The file. `open` blocks; `append` and `clear` are single quick system calls."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1
        self._torn = False

    def open(self) -> tuple[UsageEntry, ...]:
        """Open or make the file (0600) and read what it holds.

        A line that was cut short by a crash is dropped. Raises `EnvError` ``storage_failed``.
        """
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            data = self.path.read_bytes()
        except OSError as exc:
            raise file_error(exc, "open", self.path) from exc
        if data and not data.endswith(b"\n"):
            # What is appended next must not grow onto the broken line.
            os.write(self._file, b"\n")
        return tuple(_entries(data))

    def append(self, entry: UsageEntry) -> None:
        """Write one entry down. Raises `EnvError` ``storage_failed``."""
        line = _ENCODER.encode(entry) + b"\n"
        if self._torn:
            line = b"\n" + line  # what was cut short before must not swallow this one
        self._torn = True
        try:
            written = os.write(self._file, line)
        except OSError as exc:
            raise file_error(exc, "write", self.path) from exc
        if written != len(line):
            raise file_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "write", self.path)
        self._torn = False

    def clear(self) -> None:
        """Drop everything: the database has it."""
        os.ftruncate(self._file, 0)

    def close(self) -> None:
        """Close the file. May be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _entries(data: bytes) -> Iterator[UsageEntry]:
    for line in data.split(b"\n"):
        try:
            yield _DECODER.decode(line)
        except msgspec.MsgspecError:
            continue

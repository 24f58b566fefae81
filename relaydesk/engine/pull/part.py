"""A download under way: ``NAME.part``, and beside it ``NAME.part.json`` that says of what it is a part."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
from pathlib import Path
from typing import Final

import msgspec

from relaydesk.core.errors import EnvError
from relaydesk.engine.pull.disk import BLOCK, Stopped, publish

_MAX_BINDING: Final = 64 << 10


class Binding(msgspec.Struct, frozen=True):
    """What the bytes in a part are bytes of. A part with another identity or size is thrown away.

    ``identity`` is the content's own hash where the Hub lists one, else repository, commit and path.
    ``etag`` is the strong validator of the server the bytes came from, empty if it sent none.
    """

    identity: str
    size: int
    etag: str = ""


class PartFile:
    """The open part, locked, with the hashes of what is in it. Every method blocks: call it in a thread.

    The lock (flock) ends with the process, so a killed node leaves a part that the next one can take up.
    """

    def __init__(self, target: Path, binding: Binding, *, git_blob: bool) -> None:
        self.target = target
        self.path = target.with_name(target.name + ".part")
        self._note = target.with_name(target.name + ".part.json")
        self.binding = binding
        self.resumed = False
        self.size = 0
        self._git_blob = git_blob
        self._fd = -1
        self._start_hashes()

    def open(self, stop: threading.Event | None = None) -> None:
        """Take up what is there, if it is a part of the same content. Raises `EnvError`, `Stopped`."""
        self.target.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(self.path, flags, 0o644)
        try:
            self._lock()
            old = self._read_note()
            same = old is not None and (old.identity, old.size) == (self.binding.identity, self.binding.size)
            if same and old is not None and os.fstat(self._fd).st_size <= old.size:
                self.binding = old
                self._hash_what_is_there(stop)
                self.resumed = self.size > 0
            else:
                self.restart()
            self._write_note()
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = os.fstat(self._fd)
            there = os.stat(self.path, follow_symlinks=False)
            # The one who held the lock may have given the file its final name in between.
            taken = (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino)
        except (BlockingIOError, FileNotFoundError):
            taken = True
        if taken:
            raise EnvError(
                "conflict", f"{self.target.name} is being downloaded already", "wait for that pull to end"
            )

    def restart(self) -> None:
        """Throw away what is there and begin at zero."""
        os.ftruncate(self._fd, 0)
        self.size = 0
        self._start_hashes()

    def remember(self, etag: str) -> None:
        """Keep the validator of the server that sends the bytes."""
        if etag != self.binding.etag:
            self.binding = Binding(self.binding.identity, self.binding.size, etag)
            self._write_note()

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._fd, view, self.size)
            self._update(view[:written])
            self.size += written
            view = view[written:]

    def digests(self) -> tuple[str, str]:
        """SHA-256 and git's blob SHA-1 (empty unless asked for) of what is there."""
        return self._sha256.hexdigest(), self._sha1.hexdigest() if self._git_blob else ""

    def finish(self) -> None:
        """Give the content its name."""
        publish(self.path, self.target)
        self._note.unlink(missing_ok=True)
        self.close()

    def discard(self) -> None:
        """Leave nothing."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def leave(self) -> None:
        """Close; what can be resumed stays, an empty part does not."""
        if self._fd >= 0 and self.size == 0:
            self.discard()
        self.close()

    def _start_hashes(self) -> None:
        self._sha256 = hashlib.sha256()
        self._sha1 = hashlib.sha1(usedforsecurity=False)
        if self._git_blob:
            self._sha1.update(b"blob %d\0" % self.binding.size)

    def _update(self, data: memoryview) -> None:
        self._sha256.update(data)
        if self._git_blob:
            self._sha1.update(data)

    def _hash_what_is_there(self, stop: threading.Event | None) -> None:
        while block := os.pread(self._fd, BLOCK, self.size):
            self._update(memoryview(block))
            self.size += len(block)
            if stop is not None and stop.is_set():
                raise Stopped

    def _read_note(self) -> Binding | None:
        try:
            with self._note.open("rb") as file:
                return msgspec.json.decode(file.read(_MAX_BINDING), type=Binding)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _write_note(self) -> None:
        fresh = self._note.with_name(self._note.name + "~")
        fresh.write_text(json.dumps(msgspec.to_builtins(self.binding)), "utf-8")
        fresh.replace(self._note)


def part_size(target: Path) -> int:
    """Bytes of ``target`` that an earlier pull left; 0 if none. For the room a pull still needs."""
    try:
        return target.with_name(target.name + ".part").stat().st_size
    except OSError:
        return 0

"""One node a state directory."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Final

from relaydesk.core.errors import EnvError
from relaydesk.store.files import file_error, private_dir

LOCK_NAME: Final = "lock"


class StateLock:
    """An exclusive `flock` on ``<state>/lock``. The kernel drops it with the process, however that ends.

    The file holds the pid for people and stays behind: removing it would let two nodes lock two files of
    one name. Blocks only for as long as the disk does.
    """

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / LOCK_NAME
        self._handle: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._handle is not None

    def acquire(self) -> None:
        """Make the state directory where it is missing and take the lock.

        Raises `EnvError` ``state_locked`` naming the process that has it, or ``storage_failed``.
        """
        if self._handle is not None:
            return
        private_dir(self.path.parent)
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as exc:
            raise file_error(exc, "open the lock", self.path) from exc
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        except OSError as exc:
            held_by = _pid_in(handle)
            os.close(handle)
            if exc.errno in {errno.EAGAIN, errno.EACCES}:
                raise self._locked(held_by) from None
            raise file_error(exc, "write the lock", self.path) from exc
        self._handle = handle

    def release(self) -> None:
        """Let go; does nothing where the lock is not held."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _locked(self, pid: int | None) -> EnvError:
        who = f"process {pid}" if pid else "another process"
        stop = f"stop it with `kill {pid}`" if pid else "stop it"
        return EnvError(
            "state_locked",
            f"the state directory {self.path.parent} is in use by {who}",
            f"attach to that node with `relaydesk console`, or {stop}",
        )

    def __enter__(self) -> StateLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def holder(state_dir: Path) -> int | None:
    """The process that has a state directory now; None where none has it, or it cannot be told."""
    try:
        handle = os.open(state_dir / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _pid_in(handle)  # held, so the number in it is its holder's
    else:
        return None
    finally:
        os.close(handle)


def _pid_in(handle: int) -> int | None:
    """The pid in a lock file; None where its owner has not written it yet."""
    text = os.pread(handle, 32, 0).strip()
    return int(text) if text.isdigit() else None

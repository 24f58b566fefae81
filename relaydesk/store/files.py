"""Files written whole or not at all, and directories that are ours alone. All of it blocks: off the loop."""

from __future__ import annotations

import errno
import itertools
import os
import stat
from pathlib import Path
from typing import Final

from relaydesk.core.errors import EnvError

_TEMP_MARK: Final = ".tmp-"
_counter = itertools.count()
# What a person can do about the usual refusals of a file system.
_NEXT_STEP: Final = {
    errno.ENOSPC: "free some space on that disk",
    errno.EDQUOT: "free some space within the disk quota",
    errno.EROFS: "mount it writable, or choose another place with RELAY_STATE_DIR",
    errno.EACCES: "give the user of relaydesk write access, or choose another place with RELAY_STATE_DIR",
    errno.EPERM: "give the user of relaydesk write access, or choose another place with RELAY_STATE_DIR",
    errno.ENOTDIR: "a part of the path is a file: choose another place with RELAY_STATE_DIR",
    errno.EEXIST: "a file stands where a directory is needed: move it away",
    errno.EISDIR: "a directory stands where a file is needed: move it away",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.EIO: "check the disk and the kernel's log",
}


def file_error(exc: OSError, doing: str, path: Path, code: str = "storage_failed") -> EnvError:
    """One sentence for an `OSError`; ``doing`` completes "cannot …"."""
    reason = (exc.strerror or str(exc)).lower()
    return EnvError(
        code, f"cannot {doing} {path} ({reason})", _NEXT_STEP.get(exc.errno or 0, "check that path")
    )


def atomic_write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace ``path`` with ``data``; after a crash at any moment the old or the new content is there.

    The new content is on the disk before the name moves, and the directory before this returns. Raises
    `EnvError` ``storage_failed`` and leaves the old file as it was.
    """
    temp = path.with_name(f".{path.name}{_TEMP_MARK}{os.getpid()}-{next(_counter)}")
    try:
        _write_new(temp, data, mode)
        try:
            os.replace(temp, path)
        except OSError:
            temp.unlink(missing_ok=True)
            raise
        sync_dir(path.parent)
    except OSError as exc:
        raise file_error(exc, "write", path) from exc


def _write_new(temp: Path, data: bytes, mode: int) -> None:
    # A process that was killed may have left a file under the same pid.
    temp.unlink(missing_ok=True)
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            os.fchmod(handle, mode)  # what the umask took away
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError:
        temp.unlink(missing_ok=True)
        raise


def sync_dir(directory: Path) -> None:
    """Make names in a directory durable: a rename is not on the disk before its directory is."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sweep_temp(directory: Path) -> None:
    """Remove what writers that were killed left behind. Only the holder of the state lock may."""
    for path in directory.glob(f".*{_TEMP_MARK}*"):
        path.unlink(missing_ok=True)


def private_dir(path: Path, *, follow: bool = True) -> None:
    """Make a directory 0700 with its missing parents, or check that an existing one is safe to use.

    Safe: owned by this process's user and writable by nobody else. One that others may only read passes:
    every file in it is 0600, and people make such directories by hand. ``follow`` False refuses a
    symbolic link, for names in a directory where everybody can make one. Raises `EnvError`
    ``storage_failed``.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            pass
        found = path.stat(follow_symlinks=follow)
    except OSError as exc:
        raise file_error(exc, "create the directory", path) from exc
    if not stat.S_ISDIR(found.st_mode):
        raise EnvError(
            "storage_failed", f"{path} is not a directory", "move it away, or choose another place"
        )
    if found.st_uid != os.geteuid():
        raise EnvError(
            "storage_failed",
            f"the directory {path} belongs to user {found.st_uid} and relaydesk runs as user {os.geteuid()}",
            "run it as that user, or choose another place with RELAY_STATE_DIR",
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise EnvError(
            "storage_failed",
            f"other users can write to the directory {path} (mode {stat.S_IMODE(found.st_mode):04o})",
            f"`chmod 700 {path}`",
        )

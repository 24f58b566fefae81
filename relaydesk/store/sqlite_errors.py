"""SQLite's refusals as sentences with a next step."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final

from relaydesk.core.errors import EnvError

_FULL = ("the disk is full", "free some space on that disk; nothing was half-written")
_RESTORE = "restore a backup of that file, or move it away to start with an empty one"
# By primary result code (the low byte of the extended one).
_REASONS: Final[dict[int, tuple[str, str]]] = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: (
        "it is read-only",
        "give the user of relaydesk write access to the file and its directory",
    ),
    sqlite3.SQLITE_PERM: ("access is refused", "give the user of relaydesk write access to it"),
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened",
        "check that its directory exists and the user of relaydesk can write there",
    ),
    sqlite3.SQLITE_BUSY: ("another program holds it locked", "close that program and try again"),
    sqlite3.SQLITE_LOCKED: ("another program holds it locked", "close that program and try again"),
    sqlite3.SQLITE_CORRUPT: ("it is damaged", f"{_RESTORE}; it was not touched"),
    sqlite3.SQLITE_NOTADB: ("it is no SQLite database", _RESTORE),
    sqlite3.SQLITE_IOERR: ("the disk reported an error", "check the disk and the kernel's log"),
}
# Below this much free space a failed write means a full disk, whatever SQLite calls it: growing the
# shared memory of a WAL on a full disk is reported as an input/output error.
_FULL_BELOW: Final = 64 * 1024


def database_error(exc: sqlite3.Error, path: Path) -> EnvError | None:
    """The sentence for an error of the machine; None for one of our own (bad SQL, a broken constraint)."""
    primary = getattr(exc, "sqlite_errorcode", 0) & 0xFF
    reason = _REASONS.get(primary)
    if reason is None and str(exc).startswith("Could not decode"):
        # The binding found text that is no UTF-8: a damaged page that SQLite itself cannot tell.
        reason = _REASONS[sqlite3.SQLITE_CORRUPT]
    if reason is None:
        return None
    if primary == sqlite3.SQLITE_IOERR and _free_bytes(path) < _FULL_BELOW:
        reason = _FULL
    return EnvError("storage_failed", f"the database {path} cannot be used, {reason[0]}", reason[1])


def damaged(path: Path) -> EnvError:
    """What a check of the whole file found."""
    return EnvError("storage_failed", f"the database {path} cannot be used, it is damaged", _RESTORE)


def _free_bytes(path: Path) -> int:
    try:
        found = os.statvfs(path.parent)
    except OSError:
        return _FULL_BELOW
    return found.f_bavail * found.f_frsize

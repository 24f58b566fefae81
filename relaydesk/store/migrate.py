"""Opening the database file: what it is, whether it may be touched, and bringing it up to date."""

from __future__ import annotations

import os
import sqlite3
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relaydesk.core.errors import EnvError
from relaydesk.store.files import file_error, sync_dir
from relaydesk.store.sqlite_errors import damaged, database_error

# "rdsk": in the header of every database of ours, so that no other program's is ever migrated.
APPLICATION_ID: Final = 0x7264736B
_MAGIC: Final = b"SQLite format 3\0"
_MIGRATIONS: Final = Path(__file__).parent / "sql" / "migrations"
# A check reads the whole file; past this size it would hold up the start.
_CHECK_BELOW: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Migration:
    """One file ``NNNN_name.sql``; ``version`` is what ``user_version`` is after it."""

    version: int
    name: str
    sql: str


def migrations(directory: Path = _MIGRATIONS) -> tuple[Migration, ...]:
    """Every migration in order. Numbers start at 1 and have no holes."""
    found = tuple(
        Migration(int(path.name[:4]), path.stem, path.read_text(encoding="utf-8"))
        for path in sorted(directory.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    )
    if [item.version for item in found] != list(range(1, len(found) + 1)):
        raise RuntimeError(f"migrations in {directory} are not numbered 1, 2, 3, …")
    return found


def inspect(path: Path, newest: int) -> int | None:
    """The version of an existing database, None where there is none yet; changes nothing.

    Raises `EnvError` ``storage_failed`` for what relaydesk must not touch: no database, another program's,
    a damaged or locked one, one from a newer relaydesk.
    """
    try:
        # Not blocking: a FIFO in the file's place must not hang the start.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            head = file.read(len(_MAGIC)) if regular else b""
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise file_error(exc, "open the database", path) from exc
    if not regular:
        raise EnvError("storage_failed", f"the database {path} is not a regular file", "move it away")
    if not head:
        return None
    if head != _MAGIC:
        raise EnvError(
            "storage_failed",
            f"{path} is no SQLite database",
            "restore a backup of it, or move it away to start with an empty one; it was not touched",
        )
    # mode=ro never checkpoints, so that a leftover log stays as it is. Without a log nobody has the file
    # open, and immutable=1 keeps SQLite from making an empty one.
    logs = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    mode = "mode=ro" if any(log.exists() for log in logs) else "mode=ro&immutable=1"
    conn = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=2, isolation_level=None)
    try:
        return _inspect(conn, path, newest)
    except UnicodeDecodeError as exc:  # SQLite's own message quotes a damaged schema
        raise damaged(path) from exc
    except sqlite3.Error as exc:
        # These statements are right: what SQLite has no name for (a file format, a schema) is damage.
        raise database_error(exc, path) or damaged(path) from exc
    finally:
        conn.close()


def _inspect(conn: sqlite3.Connection, path: Path, newest: int) -> int | None:
    application = int(conn.execute("PRAGMA application_id").fetchone()[0])
    version = int(conn.execute("PRAGMA user_version").fetchone()[0])
    tables = int(conn.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if application == 0 and version == 0 and tables == 0:
        return None
    if application != APPLICATION_ID:
        raise EnvError(
            "storage_failed",
            f"{path} is a database of another program",
            "move it away, or choose another place with RELAY_STATE_DIR; it was not touched",
        )
    if version > newest:
        raise EnvError(
            "storage_failed",
            f"{path} was written by a newer relaydesk (version {version}, this one knows {newest})",
            _how_to_restore(path, newest),
        )
    if path.stat().st_size <= _CHECK_BELOW and conn.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise damaged(path)
    return version


def _how_to_restore(path: Path, newest: int) -> str:
    kept = [copy for copy in (backup_path(path, n) for n in range(newest, 0, -1)) if copy.exists()]
    if kept:
        # A log left beside another database would be replayed into it.
        back = f"rm -f {path}-wal {path}-shm && mv {kept[0]} {path}"
        return f"start the newer relaydesk, or go back with `{back}`; it was not touched"
    return "start the newer relaydesk, or restore a backup from before the upgrade; it was not touched"


def backup_path(path: Path, version: int) -> Path:
    """Where the copy from before an upgrade is kept."""
    return path.with_name(f"{path.name}.v{version}")


def migrate(conn: sqlite3.Connection, path: Path, steps: tuple[Migration, ...]) -> None:
    """Apply what is missing, each step whole or not at all; a database with content is copied first."""
    version = int(conn.execute("PRAGMA user_version").fetchone()[0])
    due = [step for step in steps if step.version > version]
    if due and version > 0:
        _copy(conn, backup_path(path, version))
    for step in due:
        try:
            # executescript commits whatever is open first, so the transaction is part of the script.
            conn.executescript(
                f"BEGIN IMMEDIATE;\n{step.sql}\n;PRAGMA application_id = {APPLICATION_ID};"
                f"PRAGMA user_version = {step.version};\nCOMMIT;"
            )
        except sqlite3.Error:
            if conn.in_transaction:
                conn.execute("ROLLBACK")
            raise


def _copy(conn: sqlite3.Connection, target: Path) -> None:
    temp = target.with_name(f"{target.name}.part")
    temp.unlink(missing_ok=True)
    os.close(os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    copy = sqlite3.connect(temp)
    try:
        conn.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    finally:
        copy.close()
    os.replace(temp, target)
    sync_dir(target.parent)

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from relaydesk.store.sqlite_errors import database_error


def error(code: int) -> sqlite3.OperationalError:
    exc = sqlite3.OperationalError("x")
    exc.sqlite_errorcode = code
    return exc


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (sqlite3.SQLITE_FULL, "disk is full"),
        (sqlite3.SQLITE_BUSY, "locked"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "locked"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "read-only"),
        (sqlite3.SQLITE_CORRUPT, "damaged"),
        (sqlite3.SQLITE_IOERR_READ, "disk reported an error"),
    ],
)
def test_the_machines_errors_are_sentences(tmp_path: Path, code: int, says: str) -> None:
    found = database_error(error(code), tmp_path / "x.db")
    assert found is not None
    assert found.fault.code == "storage_failed"
    assert says in found.fault.message
    assert str(tmp_path) in found.fault.message
    assert found.fault.hint


def test_what_fails_on_a_full_disk_fails_for_that(small_disk: object) -> None:
    path: Path = small_disk.path / "x.db"  # type: ignore[attr-defined]
    for fill, says in ((False, "disk reported an error"), (True, "disk is full")):
        if fill:
            small_disk.fill()  # type: ignore[attr-defined]
        found = database_error(error(sqlite3.SQLITE_IOERR_SHMSIZE), path)
        assert found is not None
        assert says in found.fault.message


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_MISUSE]
)
def test_our_own_errors_are_not(tmp_path: Path, code: int) -> None:
    assert database_error(error(code), tmp_path / "x.db") is None
    assert database_error(sqlite3.ProgrammingError("x"), tmp_path / "x.db") is None

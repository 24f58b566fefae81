from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import EnvError
from relaydesk.store.db import Database
from relaydesk.store.migrate import Migration, backup_path, migrations

ONE = Migration(1, "0001_a", "CREATE TABLE a (x TEXT); INSERT INTO a VALUES ('one;two');")
TWO = Migration(
    2, "0002_b", "-- a comment; with a semicolon\nCREATE TABLE b (y TEXT); INSERT INTO b SELECT x FROM a;"
)
BROKEN = Migration(2, "0002_b", "CREATE TABLE b (y TEXT); INSERT INTO a VALUES ('half'); SELECT nonsense;")


async def opened(path: Path, *steps: Migration) -> Database:
    database = Database(path, steps=steps)
    await database.open()
    return database


async def query(database: Database, sql: str) -> list[object]:
    return await database.read(lambda conn: [row[0] for row in conn.execute(sql)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "relaydesk.db"


def contents(path: Path) -> dict[str, bytes]:
    return {item.name: item.read_bytes() for item in path.parent.iterdir()}


def test_our_migrations_are_numbered_without_holes(tmp_path: Path) -> None:
    assert [step.version for step in migrations()] == list(range(1, len(migrations()) + 1))
    (tmp_path / "0002_x.sql").write_text("")
    with pytest.raises(RuntimeError, match="not numbered"):
        migrations(tmp_path)


async def test_step_by_step_with_a_copy_from_before(path: Path) -> None:
    await (await opened(path, ONE)).close()
    assert not backup_path(path, 1).exists()
    database = await opened(path, ONE, TWO)
    assert await query(database, "SELECT y FROM b") == ["one;two"]
    assert await query(database, "PRAGMA user_version") == [2]
    await database.close()
    assert stat.S_IMODE(backup_path(path, 1).stat().st_mode) == 0o600
    copy = await opened(backup_path(path, 1), ONE)
    assert await query(copy, "SELECT x FROM a") == ["one;two"]
    await copy.close()
    await (await opened(path, ONE, TWO)).close()


async def test_a_step_that_fails_changes_nothing(path: Path) -> None:
    await (await opened(path, ONE)).close()
    with pytest.raises(sqlite3.OperationalError, match="nonsense"):
        await opened(path, ONE, BROKEN)
    database = await opened(path, ONE)
    assert await query(database, "SELECT x FROM a") == ["one;two"]
    assert await query(database, "SELECT name FROM sqlite_master WHERE name = 'b'") == []
    await database.close()


async def test_a_first_step_that_fails_leaves_no_file(path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await opened(path, Migration(1, "0001_a", "CREATE TABLE a (x TEXT); INSERT INTO b VALUES (1);"))
    assert os.listdir(path.parent) == []


async def test_a_newer_database_is_not_touched(path: Path) -> None:
    await (await opened(path, ONE)).close()
    await (await opened(path, ONE, TWO)).close()
    before = contents(path)
    with pytest.raises(EnvError, match=r"newer relaydesk \(version 2, this one knows 1\)") as caught:
        await opened(path, ONE)
    assert contents(path) == before
    assert f"mv {backup_path(path, 1)} {path}" in caught.value.fault.hint
    backup_path(path, 1).unlink()
    with pytest.raises(EnvError, match="restore a backup from before the upgrade"):
        await opened(path, ONE)


async def test_a_newer_database_with_a_leftover_log_is_not_touched(path: Path) -> None:
    """What a killed node leaves: the newest pages are in the WAL and must stay there."""
    newer = await opened(path, ONE, TWO)
    left = contents(path)
    assert len(left[f"{path.name}-wal"]) > 0
    other = path.parent / "copy" / path.name
    other.parent.mkdir()
    for name, raw in left.items():
        (other.parent / name).write_bytes(raw)
    await newer.close()
    with pytest.raises(EnvError, match="newer relaydesk"):
        await opened(other, ONE)
    after = contents(other)
    for name in (path.name, f"{path.name}-wal"):
        assert after[name] == left[name]


async def test_another_programs_database(path: Path) -> None:
    conn = sqlite3.connect(path)
    conn.execute("CREATE TABLE theirs (x)")
    conn.close()
    before = contents(path)
    with pytest.raises(EnvError, match="database of another program"):
        await opened(path, ONE)
    assert contents(path) == before


@pytest.mark.parametrize(
    "raw", [b"hello", b"\0" * 4096, b"SQLite format 3\0", b"SQLite format 3\0" + b"\xff" * 5000]
)
async def test_no_database(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    with pytest.raises(EnvError) as caught:
        await opened(path, ONE)
    assert caught.value.fault.code == "storage_failed"
    assert "move it away" in caught.value.fault.hint
    assert path.read_bytes() == raw


@pytest.mark.parametrize("kind", ["pipe", "socket"])
async def test_what_is_no_file_does_not_hang_the_start(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    with pytest.raises(EnvError) as caught:
        await asyncio.wait_for(Database(path).open(), 5)
    assert caught.value.fault.code == "storage_failed" and caught.value.fault.hint


async def test_an_empty_file_is_a_new_database(path: Path) -> None:
    path.touch(mode=0o644)
    database = await opened(path, ONE)
    assert await query(database, "SELECT x FROM a") == ["one;two"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await database.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 12), st.integers(0, 4095), st.integers(1, 2000), st.binary(min_size=1, max_size=1))
async def test_damage_is_a_sentence_or_harmless(
    path: Path, page: int, offset: int, length: int, fill: bytes
) -> None:
    for item in path.parent.iterdir():
        item.unlink(missing_ok=True)
    database = await opened(path, ONE)
    await database.run(
        lambda conn: (
            conn.executemany("INSERT INTO a VALUES (?)", [(str(n) * 99,) for n in range(150)]) and None
        )
    )
    await database.close()
    raw = bytearray(path.read_bytes())
    start = min(page * 4096 + offset, len(raw) - 1)
    raw[start : start + length] = fill * len(raw[start : start + length])
    path.write_bytes(raw)
    fault = None
    try:
        damaged = await opened(path, ONE)
    except EnvError as exc:
        fault = exc.fault
    if fault is not None:
        assert fault.code == "storage_failed"
        assert path.read_bytes() == bytes(raw)
        return
    try:
        await query(damaged, "SELECT x FROM a")
    except EnvError as exc:
        fault = exc.fault
    await damaged.close()
    assert fault is None or fault.code == "storage_failed"

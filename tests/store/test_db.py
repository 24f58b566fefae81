from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError
from relaydesk.store.db import QUEUE_LIMIT, Database
from relaydesk.store.migrate import migrations


def put(value: str, key: str = "k") -> object:
    def work(conn: sqlite3.Connection) -> None:
        conn.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    return work


def get(conn: sqlite3.Connection) -> str | None:
    row = conn.execute("SELECT value FROM meta WHERE key = 'k'").fetchone()
    return row and row[0]


async def test_work_is_done_on_one_thread_of_its_own(database: Database) -> None:
    idents = {await database.run(lambda _: threading.get_ident()) for _ in range(5)}
    assert len(idents) == 1
    assert threading.get_ident() not in idents


async def test_settings_of_the_connection(database: Database) -> None:
    def pragmas(conn: sqlite3.Connection) -> list[object]:
        names = (
            "journal_mode",
            "foreign_keys",
            "synchronous",
            "application_id",
            "user_version",
            "busy_timeout",
        )
        return [conn.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert await database.read(pragmas) == ["wal", 1, 1, 0x7264736B, len(migrations()), 5000]


async def test_files_are_private(database: Database, tmp_path: Path) -> None:
    await database.run(put("v"))
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert found == dict.fromkeys(("relaydesk.db", "relaydesk.db-wal", "relaydesk.db-shm"), 0o600)


async def test_what_raises_is_rolled_back_and_the_next_is_served(database: Database) -> None:
    await database.run(put("old"))

    def half(conn: sqlite3.Connection) -> None:
        put("new")(conn)  # type: ignore[operator]
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await database.run(half)
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await database.run(lambda conn: conn.execute("SELECT * FROM none_such"))
    assert await database.read(get) == "old"


async def test_many_at_once_are_one_after_the_other(database: Database) -> None:
    def add(conn: sqlite3.Connection) -> None:
        put(str(int(get(conn) or 0) + 1))(conn)  # type: ignore[operator]

    await asyncio.gather(*(database.run(add) for _ in range(QUEUE_LIMIT * 2)))
    assert await database.read(get) == str(QUEUE_LIMIT * 2)


async def test_the_queue_is_bounded(database: Database) -> None:
    gate = threading.Event()
    started = [asyncio.ensure_future(database.run(lambda _: gate.wait(10)))]
    started += [asyncio.ensure_future(database.run(lambda _: None)) for _ in range(QUEUE_LIMIT + 50)]
    await asyncio.sleep(0.05)
    assert database._jobs.qsize() < QUEUE_LIMIT
    gate.set()
    await asyncio.gather(*started)


async def test_a_cancelled_caller_harms_nobody(database: Database) -> None:
    gate = threading.Event()
    first = asyncio.ensure_future(database.run(lambda _: gate.wait(10)))
    waiting = [asyncio.ensure_future(database.run(put("x"))) for _ in range(20)]
    await asyncio.sleep(0.02)
    for task in (first, *waiting):
        task.cancel()
    await asyncio.gather(first, *waiting, return_exceptions=True)
    await asyncio.sleep(0.01)
    gate.set()
    # Work that had not begun is not done, and every place in the queue is free again.
    assert await database.read(get) is None
    await asyncio.sleep(0.01)
    assert database._room._value == QUEUE_LIMIT


async def test_the_loop_stays_free(database: Database) -> None:
    gate = threading.Event()
    task = asyncio.ensure_future(database.run(lambda _: gate.wait(10)))
    for _ in range(3):
        await asyncio.sleep(0.001)
    assert not task.done()
    gate.set()
    await task


async def test_close_finishes_what_was_handed_over(tmp_path: Path) -> None:
    database = Database(tmp_path / "relaydesk.db")
    await database.open()
    pending = [asyncio.ensure_future(database.run(put(str(n), f"k{n}"))) for n in range(200)]
    await asyncio.sleep(0)
    await database.close()
    await database.close()
    await asyncio.gather(*pending)
    with pytest.raises(EnvError, match="is closed"):
        await database.run(put("late"))
    assert os.listdir(tmp_path) == ["relaydesk.db"]
    await database.open()
    assert await database.read(lambda conn: conn.execute("SELECT count(*) FROM meta").fetchone()[0]) == 200
    await database.close()


CHILD = """
import asyncio, pathlib, sys
from relaydesk.store.db import Database
from relaydesk.store.meta import MetaRepo

async def main():
    database = Database(pathlib.Path(sys.argv[1]))
    await database.open()
    meta = MetaRepo(database)
    for n in range(1_000_000):
        await meta.put(f"k{n}", "v" * 50)
        sys.stdout.write(f"{n}\\n")
        sys.stdout.flush()

asyncio.run(main())
"""


async def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "relaydesk.db"
    last = -1
    for _ in range(3):
        path.unlink(missing_ok=True)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        with subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            for line in child.stdout:
                last = int(line)
                if last == 300:
                    child.send_signal(signal.SIGKILL)
        assert last >= 300
        database = Database(path)
        await database.open()
        rows = await database.read(lambda conn: {row[0] for row in conn.execute("SELECT key FROM meta")})
        assert rows >= {f"k{n}" for n in range(last + 1)}
        await database.close()


async def test_locked_by_another_program(tmp_path: Path) -> None:
    path = tmp_path / "relaydesk.db"
    database = Database(path, busy_s=0.05)
    await database.open()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(EnvError, match="another program holds it locked: close that program"):
        await database.run(put("v"))
    assert await database.read(get) is None
    other.execute("ROLLBACK")
    other.close()
    await database.run(put("v"))
    assert await database.read(get) == "v"
    await database.close()


async def test_a_disk_that_fills_up(small_disk: object) -> None:
    database = Database(small_disk.path / "relaydesk.db")  # type: ignore[attr-defined]
    await database.open()
    await database.run(put("old"))
    small_disk.fill(leave=16384)  # type: ignore[attr-defined]
    with pytest.raises(EnvError, match=r"disk is full.*free some space") as caught:
        await database.run(put("x" * 100_000))
    assert caught.value.fault.code == "storage_failed"
    assert await database.read(get) == "old"
    small_disk.empty()  # type: ignore[attr-defined]
    await database.run(put("new"))
    assert await database.read(get) == "new"
    await database.close()


async def test_no_room_for_a_new_database(small_disk: object) -> None:
    small_disk.fill()  # type: ignore[attr-defined]
    database = Database(small_disk.path / "relaydesk.db")  # type: ignore[attr-defined]
    with pytest.raises(EnvError, match="disk is full"):
        await database.open()
    assert os.listdir(small_disk.path) == ["ballast"]  # type: ignore[attr-defined]
    small_disk.empty()  # type: ignore[attr-defined]
    await database.open()
    await database.close()


async def test_a_read_only_disk(small_disk: object) -> None:
    path = small_disk.path / "relaydesk.db"  # type: ignore[attr-defined]
    database = Database(path)
    await database.open()
    await database.run(put("v"))
    await database.close()
    small_disk.read_only()  # type: ignore[attr-defined]
    for target in (path, path.with_name("other.db")):
        with pytest.raises(EnvError) as caught:
            await Database(target).open()
        assert caught.value.fault.code == "storage_failed"
        assert str(target) in caught.value.fault.message
        assert caught.value.fault.hint


async def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="cannot use the database"):
        await Database(tmp_path / "none" / "relaydesk.db").open()

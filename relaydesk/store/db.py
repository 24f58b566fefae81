"""The node's SQLite database, owned by one thread."""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from relaydesk.core.errors import EnvError
from relaydesk.store.files import file_error
from relaydesk.store.migrate import Migration, inspect, migrate, migrations
from relaydesk.store.sqlite_errors import database_error

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

QUEUE_LIMIT: Final = 1024


@dataclass(slots=True)
class _Job:
    work: Work[Any]
    begin: str
    durable: bool
    done: Future[Any]


class Database:
    """One connection on one thread; work is handed to it and awaited.

    Each piece of work is one transaction: committed before `run` returns, rolled back where it raises. With
    ``synchronous`` NORMAL a commit survives the death of the process but not a power cut (at most what the
    last checkpoint missed, never a torn state); FULL syncs each commit. At most `QUEUE_LIMIT` pieces wait;
    further callers are held back. A cancelled caller's work may still be done.
    """

    def __init__(
        self,
        path: Path,
        *,
        synchronous: Literal["NORMAL", "FULL"] = "NORMAL",
        busy_s: float = 5.0,
        steps: tuple[Migration, ...] | None = None,
    ) -> None:
        self.path = path
        self._synchronous = synchronous
        self._busy_s = busy_s
        self._steps = steps
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._room = asyncio.Semaphore(QUEUE_LIMIT)
        self._thread: threading.Thread | None = None
        self._open = False

    async def open(self) -> None:
        """Check, create or upgrade the file, then take work.

        Raises `EnvError` ``storage_failed``: unreadable, read-only, damaged, newer, foreign, locked, disk
        full. The file is then as it was.
        """
        if self._thread is not None:
            raise RuntimeError("the database is open already")
        started: Future[None] = Future()
        self._jobs = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._serve, args=(started, self._jobs), name="store", daemon=True
        )
        self._thread.start()
        try:
            await asyncio.wrap_future(started)
        except BaseException:
            await self.close()
            raise
        self._open = True

    async def close(self) -> None:
        """Finish everything that was handed over, then close the file. May be called twice."""
        self._open = False
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(thread.join)

    async def run(self, work: Work[T], *, durable: bool = False) -> T:
        """Do ``work`` in one write transaction on the database's thread.

        ``durable``: it, and everything committed before it, is on the disk when this returns.
        """
        return await self._submit(work, "BEGIN IMMEDIATE", durable)

    async def read(self, work: Work[T]) -> T:
        """Do ``work`` in one read transaction: a single state of the database, no lock on writing."""
        return await self._submit(work, "BEGIN", durable=False)

    async def _submit(self, work: Work[T], begin: str, durable: bool) -> T:
        await self._room.acquire()
        if not self._open:
            self._room.release()
            raise EnvError("storage_failed", f"the database {self.path} is closed", "the node is stopping")
        loop = asyncio.get_running_loop()
        job = _Job(work, begin, durable, Future())
        job.done.add_done_callback(lambda _: call_soon(loop, self._room.release))
        self._jobs.put(job)
        result: T = await asyncio.wrap_future(job.done)
        return result

    def _serve(self, started: Future[None], jobs: queue.SimpleQueue[_Job | None]) -> None:
        """The thread: open, work until told to stop, close."""
        started.set_running_or_notify_cancel()
        try:
            conn = self._connect()
        except BaseException as exc:
            started.set_exception(self._explain(exc))
            return
        started.set_result(None)
        while (job := jobs.get()) is not None:
            if job.done.set_running_or_notify_cancel():
                self._do(conn, job)
        conn.close()

    def _do(self, conn: sqlite3.Connection, job: _Job) -> None:
        try:
            if job.durable:
                conn.execute("PRAGMA synchronous = FULL")
            conn.execute(job.begin)
            result = job.work(conn)
            conn.execute("COMMIT")
        except BaseException as exc:
            # SQLite has rolled back by itself after some errors (a full disk among them).
            _roll_back(conn)
            job.done.set_exception(self._explain(exc))
        else:
            job.done.set_result(result)
        finally:
            if job.durable:
                conn.execute(f"PRAGMA synchronous = {self._synchronous}")

    def _explain(self, exc: BaseException) -> BaseException:
        fault = None
        if isinstance(exc, sqlite3.Error):
            fault = database_error(exc, self.path)
        elif isinstance(exc, OSError):
            fault = file_error(exc, "use the database", self.path)
        if fault is None:
            return exc
        fault.__cause__ = exc
        return fault

    def _connect(self) -> sqlite3.Connection:
        steps = migrations() if self._steps is None else self._steps
        fresh = inspect(self.path, len(steps)) is None
        # Made here and not by SQLite: no moment with a wider mode. The WAL takes the mode of this file.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.chmod(self.path, 0o600)
        conn = sqlite3.connect(self.path, timeout=self._busy_s, isolation_level=None, check_same_thread=False)
        try:
            conn.execute("PRAGMA foreign_keys = ON")
            conn.execute("PRAGMA trusted_schema = OFF")
            conn.execute("PRAGMA journal_mode = WAL")
            conn.execute(f"PRAGMA synchronous = {self._synchronous}")
            migrate(conn, self.path, steps)
        except BaseException:
            conn.close()
            if fresh:
                self._remove_fresh()
            raise
        return conn

    def _remove_fresh(self) -> None:
        """A database that could not be made leaves nothing behind."""
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)


def _roll_back(conn: sqlite3.Connection) -> None:
    try:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
    except sqlite3.Error:
        pass  # the first error is the one to report, and the next BEGIN shows whether this one stays


def call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Run ``call`` on the loop, from another thread; nothing happens where the loop is closed already."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        pass  # the loop is closed: nobody waits for room any more

"""What keys used, by day, and how far they may have gone before the next word about it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from relaydesk.store.db import Database

USAGE_MARK = "usage_mark"


class DayUsage(msgspec.Struct, frozen=True):
    """One key's use of one day (days since 1970, UTC). Tokens by kind; ``credit`` in microunits."""

    key: str
    day: int
    requests: int
    prompt: int
    completion: int
    credit: int = 0

    @property
    def tokens(self) -> int:
        """Prompts and answers together: what a quota counts."""
        return self.prompt + self.completion


class Ahead(msgspec.Struct, frozen=True):
    """``tokens`` a key may have reached on a day; ``boot`` the system's start in which that was written."""

    key: str
    day: int
    tokens: int
    boot: str


class UsageRepo:
    """Usage by key and day."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, rows: Iterable[DayUsage], ahead: Iterable[Ahead], mark: int) -> None:
        """Add to the days' usage and replace what is said about the future, on the disk when this returns.

        ``mark`` is the last entry of the usage log that these rows hold.
        """
        added, future = list(rows), list(ahead)

        def work(conn: sqlite3.Connection) -> None:
            conn.executemany(
                "INSERT INTO usage (key, day, requests, prompt, completion, credit) "
                "VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (key, day) DO UPDATE SET requests = requests + excluded.requests, "
                "prompt = prompt + excluded.prompt, completion = completion + excluded.completion, "
                "credit = credit + excluded.credit",
                [msgspec.structs.astuple(row) for row in added],
            )
            conn.execute("DELETE FROM usage_ahead")
            conn.executemany(
                "INSERT INTO usage_ahead (key, day, tokens, boot) VALUES (?, ?, ?, ?)",
                [msgspec.structs.astuple(row) for row in future],
            )
            conn.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (USAGE_MARK, str(mark)))

        await self._database.run(work, durable=True)

    async def mark(self) -> int:
        """The last entry of the usage log that is in the database; 0 for none."""

        def work(conn: sqlite3.Connection) -> int:
            row = conn.execute("SELECT value FROM meta WHERE key = ?", (USAGE_MARK,)).fetchone()
            return int(row[0]) if row else 0

        return await self._database.read(work)

    async def ahead(self) -> tuple[Ahead, ...]:
        """What was last said about the future; empty after a clean stop."""

        def work(conn: sqlite3.Connection) -> tuple[Ahead, ...]:
            return tuple(
                Ahead(*row) for row in conn.execute("SELECT key, day, tokens, boot FROM usage_ahead")
            )

        return await self._database.read(work)

    async def list(self, key: str | None = None, since: int = 0) -> tuple[DayUsage, ...]:
        """Usage from the day ``since`` on, of one key or of all, oldest day first."""

        def work(conn: sqlite3.Connection) -> tuple[DayUsage, ...]:
            rows = conn.execute(
                "SELECT key, day, requests, prompt, completion, credit FROM usage "
                "WHERE day >= ?1 AND (?2 IS NULL OR key = ?2) ORDER BY day, key",
                (since, key),
            )
            return tuple(DayUsage(*row) for row in rows)

        return await self._database.read(work)

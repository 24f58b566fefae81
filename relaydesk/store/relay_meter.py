"""How many bytes this node carried for others, by month."""

from __future__ import annotations

import sqlite3

from relaydesk.store.db import Database


class RelayMeterRepo:
    """A month is ``year * 12 + month - 1`` in UTC."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, month: int, count: int) -> None:
        """Add ``count`` bytes to a month."""

        def work(conn: sqlite3.Connection) -> None:
            conn.execute(
                "INSERT INTO relay_meter (month, bytes) VALUES (?, ?) "
                "ON CONFLICT (month) DO UPDATE SET bytes = bytes + excluded.bytes",
                (month, count),
            )

        await self._database.run(work)

    async def list(self) -> dict[int, int]:
        """Bytes of every month there is."""

        def work(conn: sqlite3.Connection) -> dict[int, int]:
            return dict(conn.execute("SELECT month, bytes FROM relay_meter ORDER BY month").fetchall())

        return await self._database.read(work)

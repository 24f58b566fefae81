"""Small facts of the node."""

from __future__ import annotations

import sqlite3

from relaydesk.store.db import Database

NODE_ID = "node_id"
TLS_NAMES = "tls_names"
KEY_SHOWN = "default_key_shown"


class MetaRepo:
    """Text by key: the node's id, the names its CA was made for. No secrets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, key: str) -> str | None:
        """The value, None where there is none."""
        return await self._database.read(lambda conn: _get(conn, key))

    async def put(self, key: str, value: str) -> None:
        """Set a value."""

        def work(conn: sqlite3.Connection) -> None:
            conn.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

        await self._database.run(work)

    async def put_first(self, key: str, value: str) -> str:
        """Set a value that never changes again; gives the one that holds, which may be an earlier one."""

        def work(conn: sqlite3.Connection) -> str:
            conn.execute("INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)", (key, value))
            found = _get(conn, key)
            assert found is not None
            return found

        return await self._database.run(work)

    async def remove(self, key: str) -> bool:
        """Delete a value; false where there was none."""
        return await self._database.run(
            lambda conn: conn.execute("DELETE FROM meta WHERE key = ?", (key,)).rowcount > 0
        )

    async def all(self) -> dict[str, str]:
        """Everything, by key."""
        return await self._database.read(
            lambda conn: dict(conn.execute("SELECT key, value FROM meta ORDER BY key").fetchall())
        )


def _get(conn: sqlite3.Connection, key: str) -> str | None:
    row = conn.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])

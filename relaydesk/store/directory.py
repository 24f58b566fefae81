"""What is remembered of directories across restarts: documents, first owners, newest records, choices."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from relaydesk.core.relay.directory.document import Floor
from relaydesk.core.relay.directory.merge import Known, Seen
from relaydesk.core.relay.directory.record import Rank
from relaydesk.core.relay.ref import NodeRef
from relaydesk.store.db import Database

Choice = Literal["trusted", "blocked"]

# A careless directory may name new operators for ever. Who comes after so many is not remembered.
MAX_REMEMBERED: Final = 100_000


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it came, and the floor that it set."""

    floor: Floor
    data: bytes


class DirectoryRepo:
    """Everything is durable when a call returns: what was forgotten by a power cut could be rolled back."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def documents(self) -> dict[str, StoredDocument]:
        """The newest good document of each directory, by its key's address."""

        def work(conn: sqlite3.Connection) -> dict[str, StoredDocument]:
            rows = conn.execute("SELECT key, version, issued_at, digest, document FROM directories")
            return {
                key: StoredDocument(Floor(version, issued_at, digest), data)
                for key, version, issued_at, digest, data in rows
            }

        return await self._database.read(work)

    async def keep_document(self, key: str, stored: StoredDocument) -> bool:
        """Keep a newer document; false where what is kept is as new, and it stays."""
        floor = stored.floor

        def work(conn: sqlite3.Connection) -> bool:
            changed = conn.execute(
                "INSERT INTO directories (key, version, issued_at, digest, document) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET version = excluded.version, issued_at = excluded.issued_at, "
                "digest = excluded.digest, document = excluded.document "
                "WHERE excluded.version > directories.version",
                (key, floor.version, floor.issued_at, floor.digest, stored.data),
            )
            return changed.rowcount > 0

        return await self._database.run(work, durable=True)

    async def known(self) -> Known:
        """First owners, newest records and choices."""

        def work(conn: sqlite3.Connection) -> Known:
            owners = dict(conn.execute("SELECT operator, owner FROM operators").fetchall())
            seen = {
                NodeRef(operator, node): Seen(Rank(certified_at, version), digest)
                for operator, node, certified_at, version, digest in conn.execute(
                    "SELECT operator, node, certified_at, version, digest FROM node_records"
                )
            }
            choices = conn.execute("SELECT owner, choice FROM operator_choices").fetchall()
            return Known(
                owners,
                seen,
                frozenset(owner for owner, choice in choices if choice == "trusted"),
                frozenset(owner for owner, choice in choices if choice == "blocked"),
            )

        return await self._database.read(work)

    async def remember(self, owners: Mapping[int, str], seen: Mapping[NodeRef, Seen]) -> None:
        """Add first owners, which never change again, and newer records, which only go forward."""

        def work(conn: sqlite3.Connection) -> None:
            conn.executemany(
                "INSERT OR IGNORE INTO operators (operator, owner) VALUES (?, ?)",
                list(owners.items())[: _room(conn, "operators")],
            )
            conn.executemany(
                "INSERT INTO node_records (operator, node, certified_at, version, digest) "
                "VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (operator, node) DO UPDATE SET certified_at = excluded.certified_at, "
                "version = excluded.version, digest = excluded.digest "
                "WHERE (excluded.certified_at, excluded.version) > (certified_at, version)",
                [
                    (*ref, each.rank.certified_at, each.rank.version, each.digest)
                    for ref, each in list(seen.items())[: _room(conn, "node_records")]
                ],
            )

        await self._database.run(work, durable=True)

    async def choose(self, owner: str, choice: Choice, at_ms: int) -> None:
        """Trust or block an owner; the later choice counts."""

        def work(conn: sqlite3.Connection) -> None:
            conn.execute(
                "INSERT OR REPLACE INTO operator_choices (owner, choice, at_ms) VALUES (?, ?, ?)",
                (owner, choice, at_ms),
            )

        await self._database.run(work, durable=True)

    async def forget(self, owner: str) -> bool:
        """Forget the choice about an owner, that it was first, and its records. False: nothing known."""

        def work(conn: sqlite3.Connection) -> bool:
            choice = conn.execute("DELETE FROM operator_choices WHERE owner = ?", (owner,)).rowcount
            conn.execute(
                "DELETE FROM node_records WHERE operator IN (SELECT operator FROM operators WHERE owner = ?)",
                (owner,),
            )
            return choice + conn.execute("DELETE FROM operators WHERE owner = ?", (owner,)).rowcount > 0

        return await self._database.run(work, durable=True)

    async def own_record(self) -> bytes | None:
        """The record that this node published last."""

        def work(conn: sqlite3.Connection) -> bytes | None:
            row = conn.execute("SELECT record FROM own_record").fetchone()
            return None if row is None else bytes(row[0])

        return await self._database.read(work)

    async def keep_own_record(self, record: bytes) -> None:
        """Keep it, before anybody sees it: its version must not be given twice."""

        def work(conn: sqlite3.Connection) -> None:
            conn.execute("INSERT OR REPLACE INTO own_record (id, record) VALUES (1, ?)", (record,))

        await self._database.run(work, durable=True)


def _room(conn: sqlite3.Connection, table: Literal["operators", "node_records"]) -> int:
    """How many more rows a table may get."""
    (count,) = conn.execute(f"SELECT count(*) FROM {table}").fetchone()
    return max(0, MAX_REMEMBERED - int(count))

"""Named keys: specifications and the SHA-256 of their secrets."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from relaydesk.core.access.key import KeySpec
from relaydesk.core.errors import EnvError, LocalError
from relaydesk.store.db import Database

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(KeySpec)


class StoredKey(msgspec.Struct, frozen=True):
    """A key and what its secret hashes to (32 bytes)."""

    spec: KeySpec
    digest: bytes


class KeysRepo:
    """Keys by name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: StoredKey) -> None:
        """Keep a new key. Raises `LocalError` ``conflict`` where its name is taken."""

        def work(conn: sqlite3.Connection) -> None:
            if conn.execute("SELECT 1 FROM keys WHERE name = ?", (key.spec.name,)).fetchone() is not None:
                raise LocalError(
                    "conflict",
                    f"there is a key {key.spec.name} already",
                    "choose another name, or change it with `relaydesk key set`",
                    param="name",
                )
            conn.execute(
                "INSERT INTO keys (name, digest, spec) VALUES (?, ?, ?)",
                (key.spec.name, key.digest, _ENCODER.encode(key.spec)),
            )

        await self._database.run(work, durable=True)

    async def replace(self, spec: KeySpec) -> None:
        """Change a key's specification. Raises `LocalError` ``key_not_found``."""

        def work(conn: sqlite3.Connection) -> None:
            changed = conn.execute(
                "UPDATE keys SET spec = ? WHERE name = ?", (_ENCODER.encode(spec), spec.name)
            )
            if not changed.rowcount:
                raise unknown_key(spec.name)

        await self._database.run(work, durable=True)

    async def remove(self, name: str) -> None:
        """Forget a key. Raises `LocalError` ``key_not_found``."""

        def work(conn: sqlite3.Connection) -> None:
            if not conn.execute("DELETE FROM keys WHERE name = ?", (name,)).rowcount:
                raise unknown_key(name)

        await self._database.run(work, durable=True)

    async def list(self) -> tuple[StoredKey, ...]:
        """Every key, by name. Raises `EnvError` ``storage_failed`` where one cannot be read."""

        def work(conn: sqlite3.Connection) -> tuple[StoredKey, ...]:
            rows = conn.execute("SELECT name, digest, spec FROM keys ORDER BY name")
            return tuple(_stored(*row) for row in rows)

        return await self._database.read(work)


def unknown_key(name: str) -> LocalError:
    """The refusal of a name that no key has."""
    return LocalError("key_not_found", f"there is no key {name}", "see `relaydesk key list`", param="name")


def _stored(name: str, digest: bytes, spec: bytes) -> StoredKey:
    try:
        return StoredKey(_DECODER.decode(spec), digest)
    except msgspec.MsgspecError as exc:
        raise EnvError(
            "storage_failed",
            f"the stored key {name} cannot be read ({exc})",
            "restore the database from a backup",
        ) from exc

"""Registered models."""

from __future__ import annotations

import sqlite3

import msgspec

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.text import safe_text
from relaydesk.store.db import Database

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(ModelSpec)


class ModelsRepo:
    """Model specifications by name. A name or alias belongs to one model only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, spec: ModelSpec) -> None:
        """Register a model. Raises `LocalError` ``conflict`` where a name of it is taken."""

        raw = _encode(spec)

        def work(conn: sqlite3.Connection) -> None:
            _check_free(conn, spec)
            conn.execute("INSERT INTO models (name, spec) VALUES (?, ?)", (spec.name, raw))
            _write_names(conn, spec)

        await self._database.run(work)

    async def replace(self, spec: ModelSpec) -> None:
        """Store a changed specification under its name.

        Raises `LocalError` ``model_not_found``, or ``conflict`` where an alias is another model's.
        """

        raw = _encode(spec)

        def work(conn: sqlite3.Connection) -> None:
            if conn.execute("SELECT 1 FROM models WHERE name = ?", (spec.name,)).fetchone() is None:
                raise _unknown(spec.name)
            conn.execute("DELETE FROM model_names WHERE model = ?", (spec.name,))
            _check_free(conn, spec)
            conn.execute("UPDATE models SET spec = ? WHERE name = ?", (raw, spec.name))
            _write_names(conn, spec)

        await self._database.run(work)

    async def get(self, name: str) -> ModelSpec | None:
        """The model with this name or alias, None where there is none."""

        def work(conn: sqlite3.Connection) -> ModelSpec | None:
            row = conn.execute(
                "SELECT models.name, spec FROM model_names JOIN models ON models.name = model_names.model "
                "WHERE model_names.name = ?",
                (name,),
            ).fetchone()
            return _decode(*row) if row else None

        # A lone surrogate, which JSON can carry, is text that SQLite does not take and no name has.
        return await self._database.read(work) if name.isprintable() else None

    async def list(self) -> tuple[ModelSpec, ...]:
        """Every model, by name."""

        def work(conn: sqlite3.Connection) -> tuple[ModelSpec, ...]:
            return tuple(_decode(*row) for row in conn.execute("SELECT name, spec FROM models ORDER BY name"))

        return await self._database.read(work)

    async def remove(self, name: str) -> ModelSpec:
        """Forget the model of this very name (no alias), with what was measured of it; gives it back.

        Raises `LocalError` ``model_not_found``.
        """

        def work(conn: sqlite3.Connection) -> ModelSpec:
            row = conn.execute("DELETE FROM models WHERE name = ? RETURNING name, spec", (name,)).fetchone()
            if row is None:
                raise _unknown(name)
            return _decode(*row)

        return await self._database.run(work)


def _names(spec: ModelSpec) -> tuple[str, ...]:
    return (spec.name, *(alias for alias in dict.fromkeys(spec.aliases) if alias != spec.name))


def _check_free(conn: sqlite3.Connection, spec: ModelSpec) -> None:
    for name in _names(spec):
        row = conn.execute("SELECT model FROM model_names WHERE name = ?", (name,)).fetchone()
        if row is not None:
            raise LocalError(
                "conflict",
                f"the name {name} belongs to the model {row[0]}",
                "choose another, or remove that model first",
                param="name" if name == spec.name else "aliases",
            )


def _write_names(conn: sqlite3.Connection, spec: ModelSpec) -> None:
    conn.executemany(
        "INSERT INTO model_names (name, model) VALUES (?, ?)", [(name, spec.name) for name in _names(spec)]
    )


def _encode(spec: ModelSpec) -> bytes:
    try:
        return _encoder.encode(spec)
    except UnicodeEncodeError as exc:
        raise LocalError(
            "invalid_request",
            f"the model {safe_text(spec.name)} has a path or text that is not UTF-8",
            "rename the file",
        ) from exc


def _decode(name: str, raw: bytes) -> ModelSpec:
    try:
        return _decoder.decode(raw)
    except msgspec.MsgspecError as exc:
        raise EnvError(
            "storage_failed",
            f"the stored specification of the model {name} cannot be read ({exc})",
            f"remove it with `relaydesk model rm {name}` and add it again",
        ) from exc


def _unknown(name: str) -> LocalError:
    return LocalError(
        "model_not_found", f"there is no model {name}", "see `relaydesk model list`", param="name"
    )

"""What loaded models really used."""

from __future__ import annotations

import sqlite3

import msgspec

from relaydesk.core.errors import LocalError
from relaydesk.store.db import Database

_COLUMNS = "model, options, weights_bytes, kv_bytes, compute_bytes, rss_bytes, measured_ms, gpus"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement, in bytes. ``options`` is the key of the load options that it holds for, ``gpus`` how
    many devices shared it (0: the host's memory).
    """

    model: str
    options: str
    weights_bytes: int
    kv_bytes: int
    compute_bytes: int
    rss_bytes: int
    measured_ms: int
    gpus: int = 0


class MeasuredRepo:
    """The last measurement per model and load options; it goes with its model."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, measured: Measured) -> None:
        """Keep a measurement in place of the last one. Raises `LocalError` ``model_not_found``."""

        def work(conn: sqlite3.Connection) -> None:
            known = conn.execute("SELECT 1 FROM models WHERE name = ?", (measured.model,)).fetchone()
            if known is None:
                raise LocalError("model_not_found", f"there is no model {measured.model}", param="model")
            conn.execute(
                f"INSERT OR REPLACE INTO measured ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                msgspec.structs.astuple(measured),
            )

        await self._database.run(work)

    async def get(self, model: str, options: str) -> Measured | None:
        """The measurement for exactly these load options."""

        def work(conn: sqlite3.Connection) -> Measured | None:
            row = conn.execute(
                f"SELECT {_COLUMNS} FROM measured WHERE model = ? AND options = ?", (model, options)
            ).fetchone()
            return _measured(row) if row else None

        return await self._database.read(work)

    async def list(self, model: str | None = None) -> tuple[Measured, ...]:
        """Every measurement, or those of one model."""

        def work(conn: sqlite3.Connection) -> tuple[Measured, ...]:
            rows = conn.execute(
                f"SELECT {_COLUMNS} FROM measured WHERE ?1 IS NULL OR model = ?1 ORDER BY model, options",
                (model,),
            )
            return tuple(map(_measured, rows))

        return await self._database.read(work)

    async def forget(self, model: str) -> int:
        """Drop the measurements of a model whose file changed; how many there were."""

        def work(conn: sqlite3.Connection) -> int:
            return conn.execute("DELETE FROM measured WHERE model = ?", (model,)).rowcount

        return await self._database.run(work)


def _measured(row: tuple[str, str, int, int, int, int, int, int]) -> Measured:
    return Measured(**dict(zip(Measured.__struct_fields__, row, strict=True)))  # type: ignore[arg-type]

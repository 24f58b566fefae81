from __future__ import annotations

import sqlite3

import msgspec
import pytest

from relaydesk.core.errors import LocalError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.store.db import Database
from relaydesk.store.measured import Measured, MeasuredRepo
from relaydesk.store.models import ModelsRepo


def measured(model: str, options: str = "ctx=4096", rss: int = 4 << 40) -> Measured:
    return Measured(
        model=model,
        options=options,
        weights_bytes=1,
        kv_bytes=2,
        compute_bytes=3,
        rss_bytes=rss,
        measured_ms=5,
        gpus=2,
    )


async def test_the_last_measurement_per_options_holds(database: Database) -> None:
    models, repo = ModelsRepo(database), MeasuredRepo(database)
    await models.add(ModelSpec(name="a"))
    await models.add(ModelSpec(name="b"))
    for item in (measured("a"), measured("a", "ctx=1"), measured("b"), measured("a", rss=9)):
        await repo.put(item)
    assert await repo.get("a", "ctx=4096") == measured("a", rss=9)
    assert await repo.get("a", "ctx=2") is None
    assert await repo.list("a") == (measured("a", "ctx=1"), measured("a", rss=9))
    assert len(await repo.list()) == 3
    assert await repo.forget("b") == 1
    await models.replace(ModelSpec(name="a", aliases=("x",)))
    assert len(await repo.list("a")) == 2
    await models.remove("a")
    assert await repo.list() == ()


async def test_only_for_models_that_are_there(database: Database) -> None:
    with pytest.raises(LocalError) as caught:
        await MeasuredRepo(database).put(measured("gone"))
    assert caught.value.fault.code == "model_not_found"


async def test_no_negative_memory(database: Database) -> None:
    await ModelsRepo(database).add(ModelSpec(name="a"))
    with pytest.raises(sqlite3.IntegrityError):
        await MeasuredRepo(database).put(msgspec.structs.replace(measured("a"), kv_bytes=-1))

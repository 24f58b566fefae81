from __future__ import annotations

import sqlite3

import pytest

from relaydesk.core.access.key import KeySpec
from relaydesk.core.access.limits import KeyLimits
from relaydesk.core.errors import EnvError, LocalError
from relaydesk.store.db import Database
from relaydesk.store.keys import KeysRepo, StoredKey

ANN = StoredKey(KeySpec(name="ann", id="a" * 16, created_ms=5, models=("m",)), b"a" * 32)
BOB = StoredKey(KeySpec(name="bob", id="b" * 16, created_ms=6), b"b" * 32)


async def test_keys_are_kept_changed_and_removed(database: Database) -> None:
    repo = KeysRepo(database)
    for key in (BOB, ANN):
        await repo.add(key)
    assert await repo.list() == (ANN, BOB)
    changed = KeySpec(name="ann", id="a" * 16, created_ms=5, limits=KeyLimits(max_concurrency=3))
    await repo.replace(changed)
    assert (await repo.list())[0] == StoredKey(changed, ANN.digest)
    await repo.remove("ann")
    assert await repo.list() == (BOB,)


async def test_names_that_are_taken_or_unknown(database: Database) -> None:
    repo = KeysRepo(database)
    await repo.add(ANN)
    with pytest.raises(LocalError) as caught:
        await repo.add(StoredKey(ANN.spec, b"c" * 32))
    assert caught.value.fault.code == "conflict"
    for work in (repo.replace(BOB.spec), repo.remove("bob")):
        with pytest.raises(LocalError) as caught:
            await work
        assert caught.value.fault.code == "key_not_found"


async def test_a_damaged_key_is_a_sentence(database: Database) -> None:
    def damage(conn: sqlite3.Connection) -> None:
        conn.execute("INSERT INTO keys (name, digest, spec) VALUES ('x', zeroblob(32), x'5b5d')")

    await database.run(damage)
    with pytest.raises(EnvError) as caught:
        await KeysRepo(database).list()
    assert caught.value.fault.code == "storage_failed"

from __future__ import annotations

from relaydesk.store.db import Database
from relaydesk.store.meta import NODE_ID, TLS_NAMES, MetaRepo


async def test_facts(database: Database) -> None:
    meta = MetaRepo(database)
    assert await meta.get(NODE_ID) is None
    assert await meta.put_first(NODE_ID, "one") == "one"
    assert await meta.put_first(NODE_ID, "two") == "one"
    await meta.put(TLS_NAMES, "a")
    await meta.put(TLS_NAMES, "b")
    assert await meta.all() == {NODE_ID: "one", TLS_NAMES: "b"}
    assert await meta.remove(TLS_NAMES)
    assert not await meta.remove(TLS_NAMES)
    assert await meta.get(NODE_ID) == "one"

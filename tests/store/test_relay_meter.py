from __future__ import annotations

from relaydesk.store.db import Database
from relaydesk.store.relay_meter import RelayMeterRepo


async def test_a_month_adds_up_and_months_stay_apart(database: Database) -> None:
    repo = RelayMeterRepo(database)
    assert await repo.list() == {}
    for month, count in ((24_300, 5), (24_301, 7), (24_300, 2**41)):
        await repo.add(month, count)
    assert await repo.list() == {24_300: 5 + 2**41, 24_301: 7}


async def test_it_knows_months_and_bytes_and_nothing_else(database: Database) -> None:
    columns = await database.read(lambda conn: conn.execute("SELECT * FROM relay_meter").description)
    assert [column[0] for column in columns] == ["month", "bytes"]

from __future__ import annotations

from relaydesk.store.db import Database
from relaydesk.store.usage import Ahead, DayUsage, UsageRepo


async def test_usage_adds_up_by_key_and_day(database: Database) -> None:
    repo = UsageRepo(database)
    assert (await repo.mark(), await repo.ahead(), await repo.list()) == (0, (), ())
    await repo.add([DayUsage("a", 7, 1, 10, 20), DayUsage("b", 7, 1, 1, 1)], [Ahead("a", 7, 99, "x")], 3)
    await repo.add([DayUsage("a", 7, 2, 5, 5), DayUsage("a", 8, 1, 1, 2)], [], 5)
    assert await repo.mark() == 5
    assert await repo.ahead() == ()
    assert await repo.list("a") == (DayUsage("a", 7, 3, 15, 25), DayUsage("a", 8, 1, 1, 2))
    assert await repo.list(since=8) == (DayUsage("a", 8, 1, 1, 2),)
    assert DayUsage("a", 8, 1, 1, 2).tokens == 3


async def test_the_future_is_replaced_as_a_whole(database: Database) -> None:
    repo = UsageRepo(database)
    await repo.add([], [Ahead("a", 7, 99, "x"), Ahead("b", 7, 5, "x")], 1)
    await repo.add([], [Ahead("b", 7, 6, "y")], 2)
    assert await repo.ahead() == (Ahead("b", 7, 6, "y"),)

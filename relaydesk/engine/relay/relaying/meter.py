"""The bytes carried for others this month, kept over restarts."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Final

from relaydesk.core.ports import Clock
from relaydesk.store.relay_meter import RelayMeterRepo

# What a crash may lose is what was carried since the last save.
SAVE_S: Final = 60.0


def month_of(wall_ms: int) -> int:
    """The number of a month in UTC: ``year * 12 + month - 1``."""
    moment = datetime.fromtimestamp(wall_ms / 1000, UTC)
    return moment.year * 12 + moment.month - 1


class RelayMeter:
    """`add` counts, `save` writes down. A clock that is set back finds what its month had used."""

    name = "relay meter"

    def __init__(self, clock: Clock, repo: RelayMeterRepo) -> None:
        self._clock = clock
        self._repo = repo
        self._months: dict[int, int] = {}
        self._unsaved: dict[int, int] = {}

    async def open(self) -> None:
        """Read what was carried before."""
        self._months = await self._repo.list()

    def add(self, count: int) -> None:
        """Count ``count`` bytes, whichever way they went."""
        month = month_of(self._clock.wall_ms())
        self._months[month] = self._months.get(month, 0) + count
        self._unsaved[month] = self._unsaved.get(month, 0) + count

    @property
    def this_month(self) -> int:
        """Bytes of the present month."""
        return self._months.get(month_of(self._clock.wall_ms()), 0)

    async def save(self) -> None:
        """Write down what was counted since the last time. What cannot be written waits for the next."""
        while self._unsaved:
            month, count = self._unsaved.popitem()
            try:
                await self._repo.add(month, count)
            except BaseException:
                self._unsaved[month] = self._unsaved.get(month, 0) + count
                raise

    async def run(self) -> None:
        """Save once a minute, until cancelled; then once more."""
        try:
            while True:
                await asyncio.sleep(SAVE_S)
                await self.save()
        finally:
            await self.save()

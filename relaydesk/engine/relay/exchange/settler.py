"""Telling targets what they are still to be told, where no reserve comes that would take it along.

A claim or a protest counts until its ticket's deadline, ten minutes after the ticket. So it goes by itself a
while after it was there first, at a moment of its own: it must not follow a request at a fixed distance.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from relaydesk.core.errors import FaultError
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.ledger.purse import Purse
from relaydesk.engine.relay.exchange.accounts import Accounts

_log: Final = logging.getLogger(__name__)

TICK_S: Final = 15.0
# From when something waits to when it is told by itself, at the least and at the most.
LEAST_S: Final = 60.0
MOST_S: Final = 240.0
GIVE_UP_EVERY_S: Final = 3600.0


class Settler:
    """A service. ``sleep`` is for tests."""

    name: Final = "settling with targets"

    def __init__(
        self,
        accounts: Accounts,
        purse: Purse,
        clock: Clock,
        rng: Rng,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._accounts = accounts
        self._purse = purse
        self._clock = clock
        self._rng = rng
        self._sleep = sleep
        self._due: dict[NodeRef, float] = {}

    async def run(self) -> None:
        """Look every 15 s until cancelled. Raises `EnvError` where the purse's disk fails."""
        give_up_at = self._clock.mono() + GIVE_UP_EVERY_S
        while True:
            await self._sleep(TICK_S)
            await self.look()
            if self._clock.mono() >= give_up_at:
                give_up_at = self._clock.mono() + GIVE_UP_EVERY_S
                await self._purse.give_up()

    async def look(self) -> None:
        """Tell the targets whose time has come; one that cannot be told now is tried again."""
        now = self._clock.mono()
        waiting = [each.ref for each in await self._purse.accounts() if each.waiting]
        self._due = {ref: self._due.get(ref, 0.0) or now + self._pause() for ref in waiting}
        for ref in [ref for ref, due in self._due.items() if due <= now]:
            self._due[ref] = now + self._pause()
            try:
                await self._accounts.tell(ref)
            except FaultError as error:
                _log.info("node %s was not told what waits for it: %s", ref, error.fault.code)

    def _pause(self) -> float:
        chance = int.from_bytes(self._rng.token_bytes(4), "big") / 2**32
        return LEAST_S + (MOST_S - LEAST_S) * chance

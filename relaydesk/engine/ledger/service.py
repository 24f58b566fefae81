"""What the ledger does by itself: receipts are filed, tickets end, fronts are told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from relaydesk.core.ports import Clock
from relaydesk.engine.ledger.ledger import Ledger

TICK_S: Final = 1.0
_FORGET_EVERY_S: Final = 3600.0


class LedgerService:
    """A service for the supervisor. A disk that fails ends `run` with its fault; nothing is lost by that."""

    name: Final = "ledger"

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._sleep = sleep

    async def run(self) -> None:
        """Every second, until cancelled: what is due, then the view where something changed."""
        forget_at = self._clock.mono()
        while True:
            await self._ledger.due()
            if self._clock.mono() >= forget_at:
                await self._ledger.forget_free()
                forget_at = self._clock.mono() + _FORGET_EVERY_S
            await self._ledger.refresh()
            await self._sleep(TICK_S)

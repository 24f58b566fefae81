"""What keys may spend at the relay network, in the same books as their tokens (`quotas`).

What is set aside is written down as spent, on the disk before anything is paid, and corrected once it is
known what was really paid. So neither a kill nor a power cut in between is ever in a key's favour.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from relaydesk.core.access.credit import CreditStanding, Hold, KeyCredit
from relaydesk.core.access.quota import note_day
from relaydesk.core.ports import Clock


class Credits:
    """Every key's credit by the key's id.

    ``book`` writes down by how much more a key has spent on a day (less, below 0); ``sync`` returns once what
    was booked is on the disk, and raises `EnvError` where it is not.
    """

    def __init__(
        self, book: Callable[[str, int, int], None], sync: Callable[[], Awaitable[None]], clock: Clock
    ) -> None:
        self._book = book
        self._sync = sync
        self._clock = clock
        self._credits: dict[str, KeyCredit] = {}

    def note(self, key: str, day: int, amount: int) -> None:
        """What the books of an earlier start say."""
        note_day(self._credit(key).spent, day, amount)

    def limit(self, key: str, amount: int) -> None:
        """Set what a key may spend in a day, from its next ticket on."""
        self._credit(key).limit = amount

    async def hold(self, key: str, amount: int) -> Hold:
        """Set ``amount`` microunits aside for one ticket that is about to be opened.

        Raises `PeerError` as `KeyCredit.hold`, `EnvError` where the disk fails; nothing is set aside then.
        """
        hold = self._credit(key).hold(amount, self._clock.wall_ms())
        if amount:
            self._book(key, hold.day, amount)
            try:
                await self._sync()
            except BaseException:
                self.settle(key, hold, 0)
                raise
        return hold

    def settle(self, key: str, hold: Hold, amount: int) -> None:
        """``amount`` of what was set aside was paid. Does nothing the second time."""
        if change := self._credit(key).settle(hold, amount):
            self._book(key, hold.day, change)

    def standing(self, key: str) -> CreditStanding:
        """How a key's credit stands today."""
        return self._credit(key).standing(self._clock.wall_ms())

    def _credit(self, key: str) -> KeyCredit:
        found = self._credits.get(key)
        if found is None:
            found = self._credits[key] = KeyCredit()
        return found

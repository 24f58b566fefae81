"""The keys' books, kept over restarts: admitted before any work, settled after it.

What a request used is written to the usage log when it ends, so that killing the process loses nothing. About
once a second the log's lines go into the database, synced. A power cut can lose the last second; so that this
is never in a key's favour, the database holds beforehand up to how many tokens a key may go (`Ahead`), and
after a power cut the key counts as having gone there. Only a request that leads beyond it waits for the disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from relaydesk.core.access.credit import CreditStanding
from relaydesk.core.access.limits import KeyLimits
from relaydesk.core.access.quota import Ask, Grant, KeyQuota, Standing, day_of
from relaydesk.core.errors import FaultError, PeerError
from relaydesk.core.ports import Clock
from relaydesk.engine.access.credits import Credits
from relaydesk.engine.tasks import finished
from relaydesk.store.usage import Ahead, DayUsage, UsageRepo
from relaydesk.store.usage_log import UsageEntry, UsageLog

_log: Final = logging.getLogger(__name__)

FLUSH_S: Final = 1.0
# How far a key may go without waiting for the disk: a share of its limit, at least this.
_SHARE: Final = 8
_STEP: Final = 16_384
_RECENT_DAYS: Final = 7


class Quotas:
    """Every key's quota by the key's id.

    ``boot`` names this start of the system: what was said ahead in another one counts as used. ``failed`` is
    told, in a sentence, that usage cannot be kept, and "" once it can again. ``moved`` is called about once a
    second, where a key stands otherwise than before. ``credits`` are what keys may spend at the relay
    network, kept in the same books.
    """

    name = "quotas"

    def __init__(
        self,
        repo: UsageRepo,
        log: UsageLog,
        clock: Clock,
        boot: str,
        failed: Callable[[str], None],
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        self._repo = repo
        self._log = log
        self._clock = clock
        self._boot = boot
        self._failed = failed
        self._moved = moved
        self.credits = Credits(self._book_credit, self._flush, clock)
        # Keys whose standing may differ from the one told last, and what was told.
        self._active: set[str] = set()
        self._told: dict[str, tuple[Standing, CreditStanding]] = {}
        self._quotas: dict[str, KeyQuota] = {}
        self._known: dict[str, dict[int, int]] = {}
        self._pending: dict[tuple[str, int], list[int]] = {}
        self._ahead: dict[tuple[str, int], int] = {}
        self._durable: dict[tuple[str, int], int] = {}
        self._gone: set[str] = set()
        self._number = 0
        self._changed = False
        self._turn = asyncio.Lock()
        self._broken = False
        self._opened = False

    async def open(self) -> None:
        """Read what was used. Raises `EnvError` ``storage_failed``."""
        entries = await asyncio.to_thread(self._log.open)
        mark = self._number = await self._repo.mark()
        today = day_of(self._clock.wall_ms())
        for row in await self._repo.list(since=today - _RECENT_DAYS):
            self._known.setdefault(row.key, {})[row.day] = row.tokens
            self.credits.note(row.key, row.day, row.credit)
        for entry in entries:
            if entry.number > mark:
                if entry.credit:
                    self.credits.note(entry.key, entry.day, entry.credit)
                    self._pend(entry.key, entry.day, 0, 0, requests=0, credit=entry.credit)
                else:
                    self._note(entry.key, entry.day, entry.prompt, entry.completion)
                self._number = max(self._number, entry.number)
        for ahead in await self._repo.ahead():
            if ahead.boot != self._boot:
                self._charge(ahead)
        await self._flush()
        self._opened = True

    def limit(self, key: str, limits: KeyLimits) -> None:
        """Set a key's limits: they hold for the next request; running ones keep what they were granted."""
        self._gone.discard(key)
        self._quota(key).limits = limits
        self.credits.limit(key, limits.credit_per_day)

    def forget(self, key: str) -> None:
        """The key is gone: it is admitted nothing more, not even what it had begun to send.

        Its running requests still settle.
        """
        self._gone.add(key)
        if (quota := self._quotas.get(key)) is not None and not quota.running:
            del self._quotas[key]

    async def admit(self, key: str, ask: Ask) -> Grant:
        """Begin a request. Raises `PeerError` as `KeyQuota.admit`, `EnvError` where the disk fails."""
        if key in self._gone:
            raise PeerError("invalid_api_key", "the API key was revoked while its request was on its way")
        quota = self._quota(key)
        self._active.add(key)
        grant = quota.admit(ask, self._clock.mono(), self._clock.wall_ms())
        if quota.limits.tokens_per_day and self._reached(quota, grant.day) > self._durable.get(
            (key, grant.day), 0
        ):
            try:
                await self._flush(further=(key, grant.day))
            except BaseException:
                quota.settle(grant, 0)
                raise
        return grant

    def recount(self, key: str, grant: Grant, prompt: int) -> int:
        """See `KeyQuota.recount`."""
        return self._quota(key).recount(grant, prompt, self._clock.wall_ms())

    def settle(self, key: str, grant: Grant, prompt: int, completion: int) -> None:
        """End a request with what it used. Does nothing the second time, nor where nothing was granted."""
        if not grant.open:
            return
        self._active.add(key)
        self._quota(key).settle(grant, prompt + completion)
        if not prompt + completion:
            return
        self._pend(key, grant.day, prompt, completion)
        self._append(key, grant.day, prompt, completion)

    def _book_credit(self, key: str, day: int, change: int) -> None:
        """What a key has spent on a day is another amount by ``change``."""
        self._active.add(key)
        self._pend(key, day, 0, 0, requests=0, credit=change)
        self._append(key, day, 0, 0, change)

    def _append(self, key: str, day: int, prompt: int, completion: int, credit: int = 0) -> None:
        self._number += 1
        try:
            self._log.append(UsageEntry(self._number, key, day, prompt, completion, credit))
        except FaultError as error:
            self._fail(error)

    def standing(self, key: str) -> Standing:
        """How a key stands."""
        return self._quota(key).standing(self._clock.mono(), self._clock.wall_ms())

    async def history(self, key: str | None, since: int) -> tuple[DayUsage, ...]:
        """Usage by day from ``since`` (days since 1970) on, what was settled a moment ago included.

        Where the disk takes nothing it is what the database has.
        """
        try:
            await self._flush()
        except FaultError as error:
            self._fail(error)
        return await self._repo.list(key, since)

    async def run(self) -> None:
        """Take the log over into the database, about once a second."""
        while True:
            await asyncio.sleep(FLUSH_S)
            self._tell()
            if self._changed:
                try:
                    await self._flush()
                except FaultError as error:
                    self._fail(error)

    async def close(self) -> None:
        """Take everything over: nothing needs to be known ahead any more. Does nothing unless open."""
        if not self._opened:
            return
        self._opened = False
        self._ahead.clear()
        self._changed = True
        try:
            await self._flush(final=True)
        except FaultError as error:
            _log.error("usage stays in its log until the next start: %s", error)
        self._log.close()

    def _tell(self) -> None:
        """Say so where a key stands otherwise than a second ago."""
        active = [key for key in self._active if key in self._quotas]
        now = {key: (self.standing(key), self.credits.standing(key)) for key in active}
        if now != self._told:
            self._told = now
            self._moved()
        # The last 60 seconds go by without anybody doing anything.
        self._active = {key for key, (each, _) in now.items() if each.running or each.minute_used}

    def _quota(self, key: str) -> KeyQuota:
        found = self._quotas.get(key)
        if found is None:
            found = self._quotas[key] = KeyQuota(KeyLimits(), self._known.get(key))
        return found

    def _note(self, key: str, day: int, prompt: int, completion: int) -> None:
        days = self._known.setdefault(key, {})
        days[day] = days.get(day, 0) + prompt + completion
        self._pend(key, day, prompt, completion)

    def _charge(self, ahead: Ahead) -> None:
        """After a power cut: what the key may have used without our knowing is taken for used."""
        missing = ahead.tokens - self._known.get(ahead.key, {}).get(ahead.day, 0)
        if missing > 0:
            _log.warning("after a power cut, %d tokens of key %s count as used", missing, ahead.key)
            self._note(ahead.key, ahead.day, missing, 0)

    def _pend(
        self, key: str, day: int, prompt: int, completion: int, requests: int = 1, credit: int = 0
    ) -> None:
        row = self._pending.setdefault((key, day), [0, 0, 0, 0])
        row[0] += requests
        row[1] += prompt
        row[2] += completion
        row[3] += credit
        self._changed = True

    def _reached(self, quota: KeyQuota, day: int) -> int:
        return quota.used.get(day, 0) + quota.reserved(day)

    async def _flush(self, further: tuple[str, int] | None = None, *, final: bool = False) -> None:
        """Bring the database up to date. Raises `EnvError`; nothing is lost then.

        To its end, whoever stops waiting: what was written by half would be counted twice or not at all.
        """
        await finished(self._take_over(further, final))

    async def _take_over(self, further: tuple[str, int] | None, final: bool) -> None:
        async with self._turn:
            if further is not None:
                key, day = further
                quota = self._quota(key)
                reached = self._reached(quota, day)
                if reached <= self._durable.get(further, 0):
                    return  # another request's wait has seen to it
                self._look_ahead(further)
            elif not self._changed:
                return
            taken, self._pending = self._pending, {}
            mark, self._changed = self._number, False
            rows = [DayUsage(key, day, *counts) for (key, day), counts in taken.items()]
            if not final:
                for each in taken:
                    self._look_ahead(each)
            try:
                await self._repo.add(rows, [] if final else self._future(), mark)
            except FaultError:
                for row in rows:
                    self._pend(row.key, row.day, row.prompt, row.completion, row.requests, row.credit)
                self._ahead = dict(self._durable)
                raise
            # Only what is on the disk may be relied on.
            self._durable = dict(self._ahead)
            if mark == self._number:
                self._log.clear()
            if self._broken:
                self._broken = False
                self._failed("")

    def _look_ahead(self, each: tuple[str, int]) -> None:
        """Let a key that has come half way to what is known ahead of it go further."""
        key, day = each
        quota = self._quota(key)
        if not (most := quota.limits.tokens_per_day):
            return
        step = max(_STEP, most // _SHARE)
        reached = self._reached(quota, day)
        if reached + step // 2 > self._ahead.get(each, 0):
            self._ahead[each] = max(reached, min(reached + step, most))

    def _future(self) -> list[Ahead]:
        today = day_of(self._clock.wall_ms())
        for key, day in [each for each in self._ahead if each[1] < today - 1]:
            del self._ahead[key, day]
        return [Ahead(key, day, tokens, self._boot) for (key, day), tokens in self._ahead.items()]

    def _fail(self, error: FaultError) -> None:
        if not self._broken:
            self._broken = True
            _log.error("usage cannot be kept: %s", error)
            self._failed(str(error))

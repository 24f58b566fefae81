"""Keeps a certificate from an ACME server: gets it, serves it, renews it, and says how that goes."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from relaydesk.core.errors import Fault, FaultError
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.tls.renewal import Age, Tries, pause_s, start_wait_s
from relaydesk.engine.tls.acme.files import AcmeFiles, Kept
from relaydesk.engine.tls.acme.order import obtain
from relaydesk.engine.tls.acme.plan import AcmePlan
from relaydesk.engine.tls.acme.steps import Steps

_log: Final = logging.getLogger(__name__)

# A clock can be set and a machine can sleep: no wait is taken on trust for longer than this.
LOOK_S: Final = 30.0
_SAVE_S: Final = 30.0


class AcmeKeeper:
    """One plan's certificate.

    ``on_certificate`` gets every certificate that is to be served from then on. ``on_alert`` gets one
    sentence, empty where all is well; it is called on the loop, and before the loop from `load`.
    """

    def __init__(
        self,
        plan: AcmePlan,
        state_dir: Path,
        clock: Clock,
        rng: Rng,
        environ: Mapping[str, str],
        on_certificate: Callable[[Kept], None],
        on_alert: Callable[[str], None],
        *,
        look_every: float = LOOK_S,
    ) -> None:
        self.plan = plan
        self._files = AcmeFiles(state_dir, plan, clock)
        self._clock = clock
        self._rng = rng
        self._environ = environ
        self._on_certificate = on_certificate
        self._on_alert = on_alert
        self._look_every = look_every
        self._steps = Steps(plan.server)
        self._kept: Kept | None = None
        self._tries = Tries()
        # On the clock that only goes forward: not before this, whatever the certificate's age.
        self._not_before = 0.0

    @property
    def shown(self) -> str:
        """What is served, for the status: the names, the server, and until when."""
        if self._kept is None:
            return (
                f"none yet for {self.plan.shown} from {self.plan.server}; the hub's own CA vouches meanwhile"
            )
        names = ", ".join(sorted(map(str, self._kept.names)))
        return f"{names} from {self.plan.server} until {self._kept.life.end:%Y-%m-%d %H:%M} UTC"

    def load(self) -> None:
        """Serve what an earlier run has got. Blocks on files. Raises `EnvError` ``tls_failed``."""
        self._files.prepare()
        self._tries = self._files.tries()
        self._not_before = self._clock.mono() + start_wait_s(
            self._tries, self._clock.wall_ms(), self.plan.digest
        )
        kept = self._files.load()
        if kept is not None:
            self._use(kept)
        self._on_alert(self._waiting())

    async def run(self) -> None:
        """Get and renew until cancelled. What fails is an alert and tried again."""
        while True:
            wait = self._wait_s()
            if wait > 0:
                await asyncio.sleep(min(wait, self._look_every))
                continue
            try:
                account = await self._steps.do(self._files.account, _SAVE_S)
                issued = await obtain(self.plan, account, self._steps, self._clock, self._environ)
                kept = await self._steps.do(partial(self._files.save, issued), _SAVE_S)
            except FaultError as error:
                await self._failed(error.fault)
            else:
                await self._got(kept)

    def _wait_s(self) -> float:
        """Seconds until something is to be done; not positive for now."""
        pause = self._not_before - self._clock.mono()
        if self._kept is None or not self._asked_for(self._kept):
            return pause
        now = self._now()
        if self._kept.life.age(now) is Age.EARLY:
            # A new one would not be valid here either.
            self._on_alert(self._waiting())
            return self._look_every
        if self._tries.failures == 0:
            self._on_alert(self._waiting())
        return max(pause, self._kept.life.due_s(now))

    def _asked_for(self, kept: Kept) -> bool:
        return kept.names >= frozenset(self.plan.names)

    async def _got(self, kept: Kept) -> None:
        _log.info("certificate for %s from %s until %s", self.plan.shown, self.plan.server, kept.life.end)
        # Whatever the clock says: what was just made is not made again at once.
        self._not_before = self._clock.mono() + max(kept.life.length_s / 2, 1.0)
        self._tries = Tries()
        self._use(kept)
        self._on_alert(self._waiting())
        await self._remember()

    async def _failed(self, fault: Fault) -> None:
        now_ms = self._clock.wall_ms()
        failures = self._tries.failures + 1
        left = self._kept.life.left_s(self._now()) if self._kept is not None else None
        draw = int.from_bytes(self._rng.token_bytes(4)) / (1 << 32)
        pause = pause_s(failures, draw, asked_s=fault.retry_after, left_s=left)
        asked_ms = now_ms + min(fault.retry_after, round(pause)) * 1000 if fault.retry_after else 0
        self._tries = Tries(failures, now_ms, now_ms + round(pause * 1000), asked_ms, self.plan.digest)
        self._not_before = self._clock.mono() + pause
        _log.warning("no certificate for %s: %s", self.plan.shown, fault.sentence)
        # Before anything else: a node that is killed now must not ask again at once.
        await self._remember()
        self._on_alert(self._sentence(fault))

    async def _remember(self) -> None:
        try:
            await self._steps.do(partial(self._files.keep_tries, replace(self._tries)), _SAVE_S)
        except FaultError as error:
            _log.warning("the next start may ask for a certificate too soon: %s", error.fault.sentence)

    def _use(self, kept: Kept) -> None:
        self._kept = kept
        self._on_certificate(kept)

    def _waiting(self) -> str:
        """What there is to say while nothing has failed; empty where all is well."""
        now, wait = self._now(), self._not_before - self._clock.mono()
        when = f"; asked for at {_at(now, wait)}" if wait > 1 else ""
        if self._kept is None:
            return (
                f"no certificate for {self.plan.shown} from {self.plan.server} yet: until it is there the "
                f"hub serves one of its own CA{when}"
            )
        life = self._kept.life
        if life.age(now) is Age.EARLY:
            return (
                f"the certificate for {self.plan.shown} is valid from {life.start:%Y-%m-%d} and this "
                f"machine's clock says {now:%Y-%m-%d}: set the clock"
            )
        if not self._asked_for(self._kept):
            return f"no certificate for all of {self.plan.shown} yet: the former one is served{when}"
        if life.age(now) is Age.OVER:
            return f"the certificate for {self.plan.shown} ended on {life.end:%Y-%m-%d}{when}"
        return ""

    def _sentence(self, fault: Fault) -> str:
        again = f"next try at {_at(self._now(), self._not_before - self._clock.mono())}"
        if self._kept is None:
            return f"no certificate for {self.plan.shown} yet ({again}): {fault.sentence}"
        end = self._kept.life.end
        verb = "ended" if end <= self._now() else "ends"
        return (
            f"the certificate for {self.plan.shown} {verb} on {end:%Y-%m-%d} and could not be renewed "
            f"({again}): {fault.sentence}"
        )

    def _now(self) -> dt.datetime:
        return dt.datetime.fromtimestamp(self._clock.wall_ms() / 1000, dt.UTC)


def _at(now: dt.datetime, wait_s: float) -> str:
    return f"{now + dt.timedelta(seconds=max(wait_s, 0.0)):%Y-%m-%d %H:%M} UTC"

"""Targets whose own details were fetched and hold: only to these is anything forwarded.

A directory's record names a URL, and its operator could name somebody else's. What answers there must show
that it is this node: by the identity that the directory has, and by an advert signed with its key
(design §6).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from relaydesk.core.ports import Clock
from relaydesk.core.relay.records.canonical import RecordError
from relaydesk.core.relay.records.details_check import check_details
from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.engine.relay.fetch_details import fetch_details
from relaydesk.engine.relay.outbound.outbound import Outbound, UnreachableError
from relaydesk.engine.tasks import cancel_and_wait, spawn

GOOD_S: Final = 300.0
# A target in use is asked again before its time is over, so that nobody waits for that.
_EARLY_S: Final = 60.0
BACK_OFF_S: Final = 10.0
FETCH_S: Final = 20.0
# Targets remembered. Beyond that the one verified longest ago goes: it is asked again when it is needed.
_MOST: Final = 4096


@dataclass(slots=True)
class _Target:
    """What is known of one node as the directory lists it; listed otherwise, it is another."""

    listed: Listed
    good_until: float = 0.0
    not_before: float = 0.0
    reason: str = ""
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class VerifiedTargets:
    """The cache. One fetch a target at a time, whoever waits for it."""

    def __init__(self, outbound: Outbound, clock: Clock) -> None:
        self._outbound = outbound
        self._clock = clock
        self._targets: dict[NodeRef, _Target] = {}

    async def check(self, listed: Listed) -> None:
        """Return where the node may be forwarded to. Raises `UnreachableError` where it may not."""
        now = self._clock.mono()
        target = self._targets.get(listed.ref)
        if target is None or target.listed != listed:
            target = self._remember(listed)
        if target.good_until > now:
            if target.good_until - now < _EARLY_S:
                self._ask(target, now)
            return
        if not self._ask(target, now):
            raise UnreachableError("broken", target.reason)
        assert target.task is not None
        # Shielded: the first who waits may leave, and the others still wait.
        await asyncio.shield(asyncio.gather(target.task, return_exceptions=True))
        if target.good_until <= self._clock.mono():
            raise UnreachableError("broken", target.reason or "it was not verified")

    async def aclose(self) -> None:
        """End the fetches under way."""
        targets, self._targets = list(self._targets.values()), {}
        for target in targets:
            await cancel_and_wait(target.task)

    def _remember(self, listed: Listed) -> _Target:
        known = self._targets.pop(listed.ref, None)
        if known is not None and known.task is not None:
            known.task.cancel()
        if len(self._targets) >= _MOST:
            idle = (ref for ref, one in self._targets.items() if one.task is None)
            self._targets.pop(next(idle, listed.ref), None)
        target = self._targets[listed.ref] = _Target(listed)
        return target

    def _ask(self, target: _Target, now: float) -> bool:
        """Have the target asked; false while it is too early for that after a failure."""
        if target.task is None:
            if now < target.not_before:
                return False
            target.task = spawn(self._verify(target), name="verify-target")
        return True

    async def _verify(self, target: _Target) -> None:
        try:
            details = await fetch_details(self._outbound, target.listed.base_url, FETCH_S)
            check_details(details, target.listed, self._clock.wall_ms() // 1000, relayed=False)
            why = ""
        except TimeoutError:
            why = f"its details did not come within {FETCH_S:g} s"
        except UnreachableError as error:
            why = error.reason
        except RecordError as error:
            why = str(error)
        except ValueError:
            why = "its base URL cannot be asked for"
        finally:
            target.task = None
        now = self._clock.mono()
        target.reason = why
        if why:
            target.not_before = now + BACK_OFF_S
        else:
            target.good_until = now + GOOD_S

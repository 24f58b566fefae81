"""The book on relays: what this node saw of each, and how fast each is. In memory only, never shared."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from relaydesk.core.ports import Clock
from relaydesk.core.relay.latency import Latencies
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.reputation import (
    NEW,
    At,
    Credit,
    Observation,
    Reputation,
    credit,
    demoted,
    explain,
    fresh,
    stale,
)
from relaydesk.core.view.network import Tier

# Bound of the book between two looks at the directory.
MOST_RELAYS: Final = 4096


class Reputations:
    """One `Reputation` and the round trips of each relay.

    ``trusted_s`` gives how long one success keeps a relay in the tier that is drawn from: a relay that
    neither answers nor breaks is charged by no rule, but must not stay there for ever.
    """

    def __init__(self, clock: Clock, trusted_s: Callable[[], float]) -> None:
        self._clock = clock
        self._trusted_s = trusted_s
        self._book: dict[NodeRef, Reputation] = {}
        self._reached: dict[NodeRef, float] = {}
        self.latencies = Latencies()

    def get(self, relay: NodeRef) -> Reputation:
        """What is known of a relay."""
        return self._book.get(relay, NEW)

    def credit(self, relay: NodeRef, kind: Credit | None, seen: Observation) -> bool:
        """Enter what an attempt means for its relay; true where its tier changed by it."""
        if kind is None:
            return False
        before = self.tier(relay)
        if kind == "success":
            self._reached[relay] = self._clock.mono()
        self._enter(relay, credit(self.get(relay), kind, self._now(), seen))
        return self.tier(relay) != before

    def details(self, relay: NodeRef, *, is_stale: bool, seen: Observation) -> None:
        """Enter that verified details came through a relay, stale or fresh."""
        known = self.get(relay)
        self._enter(relay, stale(known, self._now(), seen) if is_stale else fresh(known, self._now()))

    def tier(self, relay: NodeRef) -> Tier:
        """``reachable`` by our own recent evidence, ``demoted``, or ``cold``: nothing is known."""
        now = self._clock.mono()
        if demoted(self.get(relay), now):
            return "demoted"
        reached = self._reached.get(relay)
        return "reachable" if reached is not None and now - reached <= self._trusted_s() else "cold"

    def until_ms(self, relay: NodeRef) -> int:
        """When its demotion ends, in wall-clock time; 0 where it is not demoted."""
        known, now = self.get(relay), self._now()
        if known.demotion is None or not demoted(known, now.mono):
            return 0
        return now.wall_ms + round((known.demotion.until - now.mono) * 1000)

    def explain(self, relay: NodeRef) -> str:
        """One sentence from stored evidence: why the relay is where it is."""
        return explain(self.get(relay), self._now())

    def rtt_ms(self, relay: NodeRef, target: NodeRef | None = None) -> float | None:
        """The mean round trip to a target, or over all; None without fresh samples."""
        now = self._clock.mono()
        if target is None:
            return self.latencies.relay_ms(relay, now)
        return self.latencies.rtt_ms(relay, target, now)

    def keep(self, listed: Collection[NodeRef]) -> None:
        """Forget every relay that no directory lists any more."""
        for relay in [relay for relay in self._book if relay not in listed]:
            self.forget(relay)

    def forget(self, relay: NodeRef) -> None:
        """Forget a relay, as when another key takes its place."""
        self._book.pop(relay, None)
        self._reached.pop(relay, None)
        self.latencies.forget(relay)

    def _enter(self, relay: NodeRef, known: Reputation) -> None:
        self._book.pop(relay, None)
        self._book[relay] = known
        if len(self._book) > MOST_RELAYS:
            self.forget(next(iter(self._book)))

    def _now(self) -> At:
        return At(self._clock.mono(), self._clock.wall_ms())

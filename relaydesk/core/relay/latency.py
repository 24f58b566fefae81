"""How long round trips through each relay take (wire §3.2): measured by ourselves, kept in memory only.

A relay's way to one target is not its way to another, so samples are kept for the pair, and for the relay
over all its targets where the pair has too few.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final

from relaydesk.core.relay.ref import NodeRef

ALPHA: Final = 0.3
STALE_S: Final = 300.0
FEWEST: Final = 2
# A sample during which our own loop stood still for longer says more about us than about the relay.
MOST_STALL_MS: Final = 10.0
# Longer than any attempt may last: what is above is no round trip.
MOST_RTT_MS: Final = 600_000.0
# Bounds of memory; what was not used for longest goes first.
MOST_PAIRS: Final = 8192
MOST_RELAYS: Final = 2048
HISTORY: Final = 60


@dataclass(slots=True)
class _Ewma:
    value: float = 0.0
    samples: int = 0
    at: float = -math.inf

    def add(self, rtt_ms: float, now: float) -> None:
        # What went stale is no part of a new mean.
        self.samples = self.samples + 1 if self.fresh(now) else 1
        self.value = rtt_ms if self.samples == 1 else ALPHA * rtt_ms + (1 - ALPHA) * self.value
        self.at = now

    def fresh(self, now: float) -> bool:
        return now - self.at <= STALE_S

    def read(self, now: float) -> float | None:
        return self.value if self.samples >= FEWEST and self.fresh(now) else None


@dataclass(slots=True)
class _Relay:
    mean: _Ewma = field(default_factory=_Ewma)
    history: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))


class Latencies:
    """Round trips of relays. Times are seconds of a clock that only goes forward; round trips are ms."""

    def __init__(self) -> None:
        self._pairs: OrderedDict[tuple[NodeRef, NodeRef], _Ewma] = OrderedDict()
        self._relays: OrderedDict[NodeRef, _Relay] = OrderedDict()

    def add(self, relay: NodeRef, target: NodeRef, rtt_ms: float, now: float, stall_ms: float) -> bool:
        """Note one clean call before inference; whether it counted.

        ``stall_ms`` is the longest that our own loop stood still during the call.
        """
        if not 0 <= rtt_ms <= MOST_RTT_MS or not stall_ms <= MOST_STALL_MS:
            return False
        pair = self._pairs.setdefault((relay, target), _Ewma())
        self._pairs.move_to_end((relay, target))
        pair.add(rtt_ms, now)
        whole = self._relays.setdefault(relay, _Relay())
        self._relays.move_to_end(relay)
        whole.mean.add(rtt_ms, now)
        whole.history.append(rtt_ms)
        if len(self._pairs) > MOST_PAIRS:
            self._pairs.popitem(last=False)
        if len(self._relays) > MOST_RELAYS:
            self._relays.popitem(last=False)
        return True

    def rtt_ms(self, relay: NodeRef, target: NodeRef, now: float) -> float | None:
        """The mean for this pair, else the relay's over all targets, else None: too few samples, or stale."""
        pair = self._pairs.get((relay, target))
        found = pair.read(now) if pair else None
        return self.relay_ms(relay, now) if found is None else found

    def relay_ms(self, relay: NodeRef, now: float) -> float | None:
        """The relay's mean over all its targets, None where it has too few samples or went stale."""
        whole = self._relays.get(relay)
        return whole.mean.read(now) if whole else None

    def history(self, relay: NodeRef) -> tuple[float, ...]:
        """The relay's last samples, at most `HISTORY`, oldest first."""
        whole = self._relays.get(relay)
        return tuple(whole.history) if whole else ()

    def forget(self, relay: NodeRef) -> None:
        """Drop what is known of a relay, as when it changes its place."""
        self._relays.pop(relay, None)
        for pair in [pair for pair in self._pairs if pair[0] == relay]:
            del self._pairs[pair]

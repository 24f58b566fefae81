"""How fast each target was in our own exchanges: in memory only, and nothing that it says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.hints import Sort
from relaydesk.core.relay.target.response_time import Timing

# Of old and new, as the network weighs its own figures (wire §6).
_OLD: Final = 9
_PARTS: Final = 10
MOST: Final = 4096
_INSTANT: Final = float("inf")


class Timings:
    """Means by target and model: the first sample counts whole, later ones a tenth."""

    def __init__(self) -> None:
        self._known: dict[tuple[NodeRef, str], Timing] = {}

    def add(self, ref: NodeRef, model: str, rtt_ms: float, ttft_ms: float, tokens_per_second: float) -> None:
        """One exchange that went well."""
        key = (ref, model)
        old = self._known.pop(key, None)
        new = Timing(rtt_ms, ttft_ms, tokens_per_second)
        if old is not None:
            new = Timing(
                _mean(old.rtt_ms, rtt_ms),
                _mean(old.ttft_ms, ttft_ms),
                _mean(old.tokens_per_second, tokens_per_second),
            )
        self._known[key] = new
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]

    def of(self, model: str, sort: Sort | None) -> Mapping[NodeRef, Timing]:
        """What a selection for ``model`` is to be sorted by; nothing where the price alone decides."""
        found = {ref: timing for (ref, name), timing in self._known.items() if name == model}
        match sort:
            case "price":
                return {}
            case "latency":
                return {ref: Timing(one.rtt_ms, one.ttft_ms, _INSTANT) for ref, one in found.items()}
            case "throughput":
                return {ref: Timing(0.0, 0.0, one.tokens_per_second) for ref, one in found.items()}
            case None:
                return found


def _mean(old: float, new: float) -> float:
    return (_OLD * old + new) / _PARTS

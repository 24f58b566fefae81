"""Which targets are asked once more, and when (wire §1.5, §2.5).

A target that has no place, or takes nothing now, has said nothing of the request: that may pass, like not
being reached. The wire says after how long one without a place may be asked again, and not how often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from relaydesk.core.relay.exchange.nobody import PASSING, WAITING, Passed
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.schedule import OVERALL_MS, SWEEPS, may_sweep, sweep_delay_ms, wait

# Before each further question to targets without a place, or as long as they say; the last one stays.
PLACE_DELAYS_MS: Final = (2_000, 2_000, 4_000, 4_000, 8_000)


@dataclass(frozen=True, slots=True)
class Next:
    """Ask ``refs`` once more after ``delay_ms``."""

    delay_ms: int
    refs: frozenset[NodeRef]


class Again:
    """One request's questions to its targets, within one budget.

    Those without a place are asked by themselves, each no sooner than its ``Retry-After``; while there are
    none, all are swept by the wire's table.
    """

    def __init__(self) -> None:
        self._last: dict[NodeRef, Passed] = {}
        # By target without a place: milliseconds from the beginning before which it wants no question.
        self._due: dict[NodeRef, int] = {}
        self._sweeps = 1
        self._places = 0

    @property
    def passed(self) -> tuple[Passed, ...]:
        """What became of each target the last time it was asked."""
        return tuple(self._last.values())

    def after(self, passed: Sequence[Passed], remaining_ms: int) -> Next | None:
        """What follows questions that got nothing, None where that is the end.

        The end comes at once where any target refused the request itself, or none could be asked. One without
        our credit is no candidate: it is not asked again, and keeps nobody from the others.
        """
        for each in passed:
            self._last[each.ref] = each
            self._due.pop(each.ref, None)
            if each.kind == "busy":
                self._due[each.ref] = OVERALL_MS - remaining_ms + (each.fault.retry_after or 0) * 1000
        left = [each for each in self._last.values() if each.kind != "no_credit"]
        kinds = {each.kind for each in left}
        passing = kinds <= {*PASSING, *WAITING}
        if kinds <= {"no_relay"} or not may_sweep(all_transient=passing, refused=not passing, paid=False):
            return None
        return self._for_a_place(remaining_ms) if self._due else self._sweep(left, remaining_ms)

    def _for_a_place(self, remaining_ms: int) -> Next | None:
        now = OVERALL_MS - remaining_ms
        table = PLACE_DELAYS_MS[min(self._places, len(PLACE_DELAYS_MS) - 1)]
        delay = wait(table, min(self._due.values()) - now, remaining_ms)
        self._places += 1
        if delay is None:
            return None
        return Next(delay, frozenset(ref for ref, due in self._due.items() if due <= now + delay))

    def _sweep(self, left: Sequence[Passed], remaining_ms: int) -> Next | None:
        if self._sweeps >= SWEEPS:
            return None
        asked = [each.fault.retry_after or 0 for each in left if each.kind == "unavailable"]
        delay = wait(sweep_delay_ms(self._sweeps), min(asked, default=0) * 1000, remaining_ms)
        self._sweeps += 1
        return None if delay is None else Next(delay, frozenset(each.ref for each in left))

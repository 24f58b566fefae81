"""What this node offers the network at this moment: loaded models, at their prices (design §6, wire §5.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from relaydesk.core.pool.offer import most_strangers, unoffered
from relaydesk.core.relay.price.rate import MICRO
from relaydesk.core.relay.records.details import OfferedModel, Reasoning
from relaydesk.core.text import safe_text
from relaydesk.engine.pool.pool import Pool
from relaydesk.engine.pool.registry import Entry


@dataclass(frozen=True, slots=True)
class Offer:
    """One model. ``window`` in tokens; rates in microUSDC per 1,000,000 tokens; ``most`` strangers may hold
    a slot of it at once, ``idle`` more of them would get one now, ``lent`` have one."""

    name: str
    window: int
    input_rate: int
    output_rate: int
    most: int
    idle: int
    lent: int


class Offers:
    """Which of the pool's models strangers may use: those the operator offers, while they are loaded.

    ``share`` is the setting for how many slots the network may hold, None for half of each model's.
    """

    def __init__(self, pool: Pool, share: Callable[[], int | None], draining: Callable[[], bool]) -> None:
        self._pool = pool
        self._share = share
        self._draining = draining

    @property
    def share(self) -> int | None:
        """Slots that the network may hold over all models; None: each model's own half bounds it."""
        return self._share()

    def models(self) -> tuple[OfferedModel, ...]:
        """As details list them; nothing while the node goes down (wire §1.3)."""
        if self._draining():
            return ()
        return tuple(
            self._listed(entry) for entry in self._pool.registry.entries() if self._offer(entry) is not None
        )

    def find(self, name: str) -> Offer | None:
        """A model by the name that details give it; None for whatever is not served now."""
        entries = self._pool.registry.entries()
        entry = next((each for each in entries if each.spec.name == name), None)
        return None if entry is None else self._offer(entry)

    def _offer(self, entry: Entry) -> Offer | None:
        spec = entry.spec
        slots, share = self._pool.slots(spec.name), self._share()
        if not spec.offer or slots is None:
            return None
        completion = self._pool.registry.capabilities(spec.name).completion
        if unoffered(spec.kind, slots.count, completion=completion, share=share):
            return None
        most = most_strangers(slots.count, share)
        return Offer(
            spec.name,
            self._pool.context(entry),
            spec.input_rate,
            spec.output_rate,
            most,
            slots.idle_for_strangers(most),
            slots.lent,
        )

    def _listed(self, entry: Entry) -> OfferedModel:
        spec, can = entry.spec, self._pool.registry.capabilities(entry.spec.name)
        return OfferedModel(
            id=spec.name,
            # Whole microUSDC below 10**15: the shortest decimal of such a float is exact.
            input_rate_usd_per_1m=spec.input_rate / MICRO,
            output_rate_usd_per_1m=spec.output_rate / MICRO,
            context_window=self._pool.context(entry),
            input_modalities=tuple(map(safe_text, ("text", "image") if can.images else ("text",))),
            output_modalities=(safe_text("text"),),
            reasoning=Reasoning(supported=True) if can.thinking else None,
            tool_use=can.tools,
            # The engine is on this machine, and nothing of a request outlives it.
            retention="no_upstream",
        )

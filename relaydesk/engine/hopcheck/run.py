"""A whole check: every probe of every layer, side by side, within a bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from relaydesk.core.hopcheck.decide import decide
from relaydesk.core.hopcheck.model import Exchange, Layer, Observation, Report
from relaydesk.core.hopcheck.probes import (
    LONG_UNTESTED,
    QUICK_S,
    SILENCE,
    SILENCE_SLACK_S,
    SILENCES,
    Probe,
    probes_of,
    silence_id,
)
from relaydesk.engine.hopcheck.door import door_of
from relaydesk.engine.hopcheck.sends import Sender, Tools

# Exchanges at once, over all layers. Few enough that none of them waits for another's bytes.
_AT_ONCE: Final = 8
_FIRST: Final = ("name", "tls", "reach")
_UNREACHED: Final = "nothing of the relay was reached here"
_LATE: Final = "the check was over before it"


class Watcher(Protocol):
    """Who is told how a check goes on."""

    def planned(self, layers: Sequence[Layer], probes: Mapping[str, Sequence[Probe]]) -> None:
        """Before the first probe: all of them, by layer."""

    def began(self, layer: Layer, probe: str) -> None:
        """A probe is being sent."""

    def ended(self, layer: Layer, observed: Observation) -> None:
        """A probe is over, or was left out."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be checked: layers from the inside outwards, the last of them the public URL.

    ``silences`` in seconds; with ``long`` they are sent. ``outside`` asks peers for what they see of the
    public URL, None where there are none. ``from_node``: this is the node's machine.
    """

    layers: tuple[Layer, ...]
    tools: Tools
    long: bool = False
    silences: tuple[float, ...] = SILENCES
    outside: Callable[[], Awaitable[Exchange | None]] | None = None
    from_node: bool = False
    lab: bool = False


async def check(plan: Plan, watcher: Watcher) -> Report:
    """Send all of it and decide. Raises `ValueError` for a layer without a host."""
    run = _Run(plan, watcher)
    await run.all()
    return decide(plan.layers, run.seen, from_node=plan.from_node, lab=plan.lab)


@dataclass
class _Run:
    plan: Plan
    watcher: Watcher
    seen: dict[str, dict[str, Observation]] = field(init=False)
    probes: dict[str, tuple[Probe, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self._gate = asyncio.Semaphore(_AT_ONCE)
        # Alone on the line: a large body would hold up what is timed.
        self._bodies = asyncio.Semaphore(1)
        outside = self.plan.outside is not None
        self.probes = {
            layer.name: probes_of(layer.kind, self.plan.silences, outside=outside)
            for layer in self.plan.layers
        }
        self.seen = {layer.name: {} for layer in self.plan.layers}

    async def all(self) -> None:
        public = self.plan.layers[-1]
        senders = [(layer, Sender(door_of(layer, public), self.plan.tools)) for layer in self.plan.layers]
        self.watcher.planned(self.plan.layers, self.probes)
        async with asyncio.TaskGroup() as group:
            quick = [
                group.create_task(self._quick(layer, sender), name=f"probes of {layer.name}")
                for layer, sender in senders
            ]
            if self.plan.outside is not None:
                group.create_task(self._outside(public), name="dial-back")
            await asyncio.wait(quick)
            for layer, sender in senders:
                for seconds in self.plan.silences:
                    group.create_task(self._silence(layer, sender, seconds), name="silence")
        for layer in self.plan.layers:
            order = {probe.id: at for at, probe in enumerate(self.probes[layer.name])}
            found = self.seen[layer.name]
            self.seen[layer.name] = {
                name: found[name] for name in sorted(found, key=lambda each: order[each])
            }

    async def _quick(self, layer: Layer, sender: Sender) -> None:
        """First whether anybody is there; then everything else that is quick."""
        sends = sender.sends()
        wanted = [probe for probe in self.probes[layer.name] if probe.id in sends]
        try:
            async with asyncio.timeout(QUICK_S):
                # The certificate before the answer: where it is refused, the rest is asked without it.
                first = sorted(
                    (probe for probe in wanted if probe.id in _FIRST), key=lambda each: _FIRST.index(each.id)
                )
                for probe in first:
                    await self._one(layer, probe.id, sends[probe.id])
                if self._answers(layer):
                    async with asyncio.TaskGroup() as group:
                        for probe in wanted:
                            if probe not in first and probe.id != "body":
                                group.create_task(self._one(layer, probe.id, sends[probe.id]), name=probe.id)
                    async with self._bodies:
                        await self._one(layer, "body", sends["body"])
        except TimeoutError:
            pass
        why = _LATE if self._answers(layer) else _UNREACHED
        for probe in wanted:
            if probe.id not in self.seen[layer.name]:
                self._note(layer, Observation(probe.id, layer.name, untested=why))

    async def _one(self, layer: Layer, probe: str, send: Callable[[], Awaitable[Observation]]) -> None:
        async with self._gate:
            self.watcher.began(layer, probe)
            self._note(layer, await send())

    async def _silence(self, layer: Layer, sender: Sender, seconds: float) -> None:
        probe = silence_id(seconds)
        if not self.plan.long or not self._answers(layer):
            why = _UNREACHED if self.plan.long else LONG_UNTESTED
            self._note(layer, Observation(probe, layer.name, untested=why))
            return
        self.watcher.began(layer, probe)
        self._note(layer, await sender.send_silence(probe))

    async def _outside(self, public: Layer) -> None:
        assert self.plan.outside is not None
        self.watcher.began(public, "outside")
        answer = await self.plan.outside()
        if answer is None:
            self._note(public, Observation("outside", public.name, untested="no peer looks from outside now"))
        else:
            self._note(
                public, Observation("outside", public.name, (("outside", answer),), took_ms=answer.took_ms)
            )

    def _answers(self, layer: Layer) -> bool:
        """Whether there was an HTTP answer at all."""
        reach = self.seen[layer.name].get("reach")
        return reach is not None and any(answer.status for _, answer in reach.exchanges)

    def _note(self, layer: Layer, observed: Observation) -> None:
        self.seen[layer.name][observed.probe] = observed
        self.watcher.ended(layer, observed)


def longest_s(plan: Plan) -> float:
    """How long a check may last at most."""
    return QUICK_S + (max(plan.silences, default=0.0) + SILENCE_SLACK_S if plan.long else 0.0) + 5.0


def is_silence(probe: str) -> bool:
    """Whether a probe is one of the long ones."""
    return probe.startswith(f"{SILENCE}-")

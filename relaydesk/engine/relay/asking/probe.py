"""Background probes: the details of every listed node, fetched through relays (wire §3.5).

A probe says something of two nodes: its target, whose details are verified, and the relay it went through.
Each round asks for every node once, and through every node once, also through a demoted one: so one success
brings it back within a round, though nothing else is sent through it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from relaydesk.core.events import Event, NetworkChanged, RelaysChanged
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.relay.hop import DETAILS_PATH
from relaydesk.core.relay.records.details import DETAILS_LIMIT
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.text import safe_text
from relaydesk.core.view.network import HopView
from relaydesk.engine.bus import Bus
from relaydesk.engine.relay.asking.answered import NotReachedError
from relaydesk.engine.relay.asking.ask import Ask
from relaydesk.engine.relay.asking.choice import Choice
from relaydesk.engine.relay.asking.judge import Judge
from relaydesk.engine.relay.asking.peers import Peers
from relaydesk.engine.relay.asking.reputations import Reputations
from relaydesk.engine.relay.asking.send import Sender

HEAD_S: Final = 15.0
AT_ONCE: Final = 6
# Of targets that do not answer, before one of them is good enough to ask through a relay.
MOST_LOOKED: Final = 64
# Rounds of all nodes must not meet: each interval is up to this share shorter or longer.
JITTER: Final = 0.2
FIRST_S: Final = 2.0


class Prober:
    """Probes, and is the service that does it every ``interval_s`` seconds.

    ``after_round`` is called whenever something was learnt.
    """

    name = "relay probes"

    def __init__(
        self,
        peers: Peers,
        choice: Choice,
        judge: Judge,
        reputations: Reputations,
        sender: Sender,
        clock: Clock,
        rng: Rng,
        bus: Bus,
        interval_s: Callable[[], float],
        after_round: Callable[[], None],
    ) -> None:
        self._peers = peers
        self._choice = choice
        self._judge = judge
        self._reputations = reputations
        self._sender = sender
        self._clock = clock
        self._rng = rng
        self._bus = bus
        self._interval_s = interval_s
        self._after_round = after_round
        self._listed = asyncio.Event()
        self.probed_at_ms = 0
        self.next_at_ms = 0

    async def run(self) -> None:
        """Probe until cancelled; nodes that a directory lists newly are probed soon."""
        stop = self._bus.listen(self._heard)
        try:
            pause = FIRST_S
            while True:
                self.next_at_ms = self._clock.wall_ms() + round(pause * 1000)
                self._bus.publish(RelaysChanged())
                await self._pause(pause)
                await self.round()
                pause = self._interval_s() * (1 + JITTER * (2 * self._chance() - 1))
        finally:
            stop()

    async def round(self, ref: NodeRef | None = None) -> list[HopView]:
        """Probe every listed node, or one, as a target and then as a relay; every attempt that was made."""
        everyone = [peer.listed.ref for peer in self._peers]
        wanted = everyone if ref is None else [each for each in everyone if each == ref]
        hops = await self._wave(lambda target: self._probe(target, None), wanted)
        used = {hop.relay for hop in hops}
        unused = [relay for relay in wanted if str(relay) not in used]
        hops += await self._wave(lambda relay: self._probe_through(relay, everyone), unused)
        if ref is None:
            self._reputations.keep(set(everyone))
            self.probed_at_ms = self._clock.wall_ms()
        self._after_round()
        self._bus.publish(RelaysChanged())
        return hops

    async def _wave(
        self, probe: Callable[[NodeRef], Awaitable[list[HopView]]], refs: Sequence[NodeRef]
    ) -> list[HopView]:
        found: list[list[HopView]] = [[] for _ in refs]
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(at: int, ref: NodeRef) -> None:
            async with gate:
                found[at] = await probe(ref)

        async with asyncio.TaskGroup() as group:
            for at, ref in enumerate(refs):
                group.create_task(one(at, ref), name=f"probe of {ref}")
        return [hop for hops in found for hop in hops]

    async def _probe_through(self, relay: NodeRef, everyone: Sequence[NodeRef]) -> list[HopView]:
        """Probe a relay by whatever it may relay for; nothing where that is nobody."""
        # Looked for now and not for all beforehand: of thousands that would hold up the loop.
        target = self._target_for(relay, everyone)
        if target is None:
            await asyncio.sleep(0)
            return []
        return await self._probe(target, relay)

    def _target_for(self, relay: NodeRef, everyone: Sequence[NodeRef]) -> NodeRef | None:
        """A node to ask for through ``relay``, likely to answer; None where it may relay for nobody."""
        start = int(self._chance() * len(everyone))
        spare: NodeRef | None = None
        looked = 0
        for target in (*everyone[start:], *everyone[:start]):
            if target.operator == relay.operator or not self._choice.may_relay(relay, target):
                continue
            if self._answers(target):
                return target
            spare, looked = spare or target, looked + 1
            if looked >= MOST_LOOKED:
                break
        return spare

    def _answers(self, ref: NodeRef) -> bool:
        peer = self._peers.get(ref)
        return peer is not None and peer.probed and not self._peers.is_down(ref)

    async def _probe(self, target: NodeRef, first: NodeRef | None) -> list[HopView]:
        ask = Ask(
            target=target,
            path=DETAILS_PATH,
            method="GET",
            purpose="probe",
            accept="application/json",
            head_s=HEAD_S,
            check=self._peers.check,
            check_limit=DETAILS_LIMIT,
        )
        peer = self._peers.get(target)
        if peer is not None:
            peer.tried = True
        try:
            answered = await self._sender.send(ask, first=first)
        except NotReachedError as error:
            if peer is not None:
                peer.problem = safe_text(error.fault.message)
            return list(error.hops)
        async with answered:
            known = self._peers.get(target)
            if known is None:
                return list(answered.hops)
            if not 200 <= answered.status < 300:
                known.problem = safe_text(f"it answered {answered.status} {answered.code}".rstrip())
            elif known.verified is not None:
                self._judge.details(answered.tried[-1], stale=known.verified.stale)
            return list(answered.hops)

    async def _pause(self, seconds: float) -> None:
        """Wait, but go on soon after the directory changed."""
        self._listed.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._listed.wait()
                await asyncio.sleep(min(seconds, FIRST_S))
        except TimeoutError:
            pass

    def _heard(self, event: Event) -> None:
        if isinstance(event, NetworkChanged) and any(not peer.tried for peer in self._peers):
            self._listed.set()

    def _chance(self) -> float:
        return int.from_bytes(self._rng.token_bytes(6), "big") / 2**48

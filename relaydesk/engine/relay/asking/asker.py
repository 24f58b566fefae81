"""The asking side of the relay network: what this node knows of others, and how it asks them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Final

from relaydesk.core.ports import Clock, Rng
from relaydesk.core.relay.ref import Directory, Listed, NodeRef
from relaydesk.core.relay.schedule import OVERALL_MS
from relaydesk.core.view.network import HopsView, HopView, RelaysView
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.bus import Bus
from relaydesk.engine.relay.asking.answered import Answered
from relaydesk.engine.relay.asking.ask import Ask
from relaydesk.engine.relay.asking.choice import Choice
from relaydesk.engine.relay.asking.hops import Hops
from relaydesk.engine.relay.asking.judge import Judge
from relaydesk.engine.relay.asking.peers import Peers
from relaydesk.engine.relay.asking.probe import Prober
from relaydesk.engine.relay.asking.reputations import Reputations
from relaydesk.engine.relay.asking.send import Sender, Sleep, Stalls
from relaydesk.engine.relay.asking.view import RelaysReport, Stranger
from relaydesk.engine.relay.outbound.outbound import Outbound
from relaydesk.engine.supervisor import Service

# A relay stays in the tier that is drawn from for so many probe rounds after its last success.
_TRUSTED_ROUNDS: Final = 3


def _nobody() -> Sequence[Stranger]:
    return ()


class Asker:
    """Everything that asks through relays, put together. ``self_ref`` is None where this node has no id."""

    def __init__(
        self,
        directory: Directory,
        self_ref: NodeRef | None,
        outbound: Outbound,
        clock: Clock,
        rng: Rng,
        lag: Stalls,
        bus: Bus,
        alerts: AlertBoard,
        interval_s: Callable[[], float],
        *,
        strangers: Callable[[], Sequence[Stranger]] = _nobody,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._directory = directory
        self.peers = Peers(directory, self_ref, clock)
        self.reputations = Reputations(clock, lambda: _TRUSTED_ROUNDS * interval_s())
        self.hops = Hops(bus)
        self.choice = Choice(self.peers, self.reputations, rng)
        judge = Judge(self.peers, self.reputations, self.hops, rng, bus)
        self._sender = Sender(self.peers, self.choice, judge, self.reputations, outbound, clock, lag, sleep)
        self.report = RelaysReport(
            self.peers, self.choice, self.reputations, alerts, self._self_listed, strangers
        )
        self._prober = Prober(
            self.peers,
            self.choice,
            judge,
            self.reputations,
            self._sender,
            clock,
            rng,
            bus,
            interval_s,
            self.report.update,
        )

    async def send(
        self, ask: Ask, *, first: NodeRef | None = None, budget_s: float = OVERALL_MS / 1000
    ) -> Answered:
        """Ask until an answer comes, as `Sender.send` does. Raises `NotReachedError`."""
        return await self._sender.send(ask, first=first, budget_s=budget_s)

    async def send_once(self, ask: Ask, *, tried: Collection[NodeRef] = ()) -> Answered:
        """Ask once, for what was paid for, as `Sender.send_once` does. Raises `NotReachedError`."""
        return await self._sender.send_once(ask, tried=tried)

    async def probe_all(self, ref: NodeRef | None = None) -> list[HopView]:
        """Probe every listed node, or one, now; every attempt that was made."""
        return await self._prober.round(ref)

    def services(self) -> tuple[Service, ...]:
        """What the supervisor runs."""
        return (self._prober,)

    def relays_view(self) -> RelaysView:
        """The section ``relays``."""
        return self.report.view(self._prober.probed_at_ms, self._prober.next_at_ms)

    def hops_view(self) -> HopsView:
        """The section ``hops``."""
        return self.hops.view()

    def newest_version(self) -> str:
        """The highest ``proto_version`` that a probed node speaks; empty where none was probed."""
        return self.peers.newest_version()

    def _self_listed(self) -> Listed | None:
        ref = self.peers.self_ref
        return None if ref is None else self._directory.find(ref)

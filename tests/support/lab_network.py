"""A network of `LabNode`s on loopback with an `Asker` that asks through them."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Any

from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.core.view.network import HopView, RelayView
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.bus import Bus
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.relay.asking.ask import Ask
from relaydesk.engine.relay.asking.asker import Asker
from relaydesk.engine.relay.outbound.outbound import Outbound
from tests.support.lab_relay import LabNode


class ShiftedClock(SystemClock):
    """The system's clocks, which a test may put forward."""

    ahead_s = 0.0

    def wall_ms(self) -> int:
        return super().wall_ms() + round(self.ahead_s * 1000)

    def mono(self) -> float:
        return super().mono() + self.ahead_s


class Stalls:
    """A loop that stood still for as long as a test says."""

    ms = 0.0

    def worst_since(self, mono: float) -> float:
        return self.ms


@dataclass
class ListedNodes:
    """A `Directory` over what a test lists."""

    listed: dict[NodeRef, Listed] = field(default_factory=dict)

    def nodes(self) -> tuple[Listed, ...]:
        return tuple(self.listed[ref] for ref in sorted(self.listed))

    def find(self, ref: NodeRef) -> Listed | None:
        return self.listed.get(ref)


class LabNetwork:
    """Nodes 1:1 to ``count``:1, all listed, and an asker that is none of them. A context manager."""

    def __init__(self, count: int, **fields: Any) -> None:
        self.clock = ShiftedClock()
        self.stalls = Stalls()
        self.directory = ListedNodes()
        self.bus = Bus()
        self.alerts = AlertBoard(self.clock, self.bus)
        self.slept: list[float] = []
        self.nodes = [LabNode(at + 1, wall_ms=self.clock.wall_ms, **fields) for at in range(count)]
        self.asker = self.make_asker()

    def make_asker(self, self_ref: NodeRef | None = None) -> Asker:
        """An asker of this network that has learnt nothing yet."""
        self.outbound = Outbound(SystemClock(), allow_private=lambda: True, tls=ssl.create_default_context)
        return Asker(
            self.directory,
            self_ref,
            self.outbound,
            self.clock,
            SystemRng(),
            self.stalls,
            self.bus,
            self.alerts,
            lambda: 120.0,
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    async def __aenter__(self) -> LabNetwork:
        for node in self.nodes:
            await node.start()
        for node in self.nodes:
            self.list(node)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.outbound.aclose()
        for node in self.nodes:
            await node.stop()

    def list(self, node: LabNode) -> None:
        """Let the directory and every node know ``node``."""
        ref = NodeRef(node.operator, node.node)
        self.directory.listed[ref] = Listed(ref, node.owner, node.signing, node.base_url)
        for each in self.nodes:
            each.peers[(str(node.operator), str(node.node))] = node

    def only(self, *numbers: int) -> None:
        """List these nodes and no others."""
        wanted = {NodeRef(number, 1) for number in numbers}
        self.directory.listed = {ref: each for ref, each in self.directory.listed.items() if ref in wanted}

    def ask(self, number: int, **fields: Any) -> Ask:
        """A reserve for node ``number``, unless told otherwise."""
        given: dict[str, Any] = {
            "path": "/v1/zs/reserve",
            "purpose": "reserve",
            "body": b'{"ciphertext":"AA=="}',
        }
        given["content_type"] = "application/vnd.zs-reserve+json"
        return Ask(target=NodeRef(number, 1), **(given | fields))

    def relay(self, number: int) -> RelayView:
        """What the view says of a node."""
        found = [each for each in self.asker.relays_view().relays if each.ref == f"{number}:1"]
        assert len(found) == 1
        return found[0]

    @property
    def hops(self) -> tuple[HopView, ...]:
        """Newest first."""
        return self.asker.hops_view().hops

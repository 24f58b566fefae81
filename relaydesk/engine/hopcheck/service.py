"""The check as a part of a node: on command, by schedule, and for a check that runs elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from relaydesk.core.codec import to_builtins
from relaydesk.core.commands import CheckHop, LookFromOutside, Outcome, PrepareHopCheck
from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.hopcheck.model import Layer, Observation, Report
from relaydesk.core.hopcheck.probes import BODY_S, LONG_BODY_S
from relaydesk.core.hopcheck.report import layer_view, summary
from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.core.text import SafeText, safe_text
from relaydesk.core.view.hopcheck import HopCheckView, HopScheduleView
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.hopcheck.board import Board
from relaydesk.engine.hopcheck.dialback import DialbackDesk, Outlook
from relaydesk.engine.hopcheck.door import trusts
from relaydesk.engine.hopcheck.layers import chain, own_layers
from relaydesk.engine.hopcheck.nonces import Nonces
from relaydesk.engine.hopcheck.run import Plan, check
from relaydesk.engine.hopcheck.sends import Tools
from relaydesk.engine.jobs import Job, JobBoard
from relaydesk.engine.relay.parts import Parts
from relaydesk.engine.relay.service import NetworkService
from relaydesk.engine.tls.addresses import this_machine

KIND: Final = "check-hop"
ALERT: Final = "hop_check"
# A first look soon after the start, and a second one before anybody is alarmed.
FIRST_S: Final = 120.0
CONFIRM_S: Final = 30.0
_OFF_S: Final = 60.0


class HopChecks:
    """``nonces`` open the node's own answers to probes, which the network listener gives."""

    name = "hop check"

    def __init__(
        self,
        network: NetworkService,
        jobs: JobBoard,
        *,
        sleep: Callable[[float], Any] = asyncio.sleep,
    ) -> None:
        ground = network.ground
        self._network = network
        self._jobs = jobs
        self._ground = ground
        self._sleep = sleep
        self._board = Board(ground.clock, ground.bus)
        self._own: tuple[Layer, ...] = ()
        self._passing: bool | None = None
        self.nonces = Nonces(ground.clock, ground.rng)

    def register(self, dispatcher: Dispatcher) -> None:
        """Offer the commands."""
        dispatcher.on(CheckHop, self.check)
        dispatcher.on(PrepareHopCheck, self.prepare)
        dispatcher.on(LookFromOutside, self.look)

    def view(self) -> HopCheckView:
        """The section ``hopcheck``."""
        own = own_layers(self._network.listening, ()) if not self._own else self._own
        url = self._ground.settings().public_url
        return self._board.view((*own, Layer("public", url, "public")) if url else own)

    def desk(self) -> DialbackDesk:
        """What answers other nodes that want to be looked at. The network must be up."""
        parts = self._parts()
        return DialbackDesk(
            parts.book,
            parts.identity,
            parts.outbound,
            self._ground.clock,
            lambda: self._ground.settings().dialback == "on",
        )

    async def check(self, command: CheckHop) -> Outcome:
        """Start a check. Raises `LocalError` (``conflict``, ``invalid_request``), `EnvError` ``conflict``."""
        parts = self._parts()
        if self._board.running:
            raise LocalError("conflict", "a check is running already", "wait for it, or cancel its job")
        url = command.url or self._advertised()
        layers = chain(await self._doors(), command.via, url)
        tools = await self._tools(parts, LONG_BODY_S if command.long else BODY_S)
        plan = Plan(
            layers,
            tools,
            command.long,
            outside=self._outlook(parts, layers[-1].url),
            from_node=True,
            lab=self._ground.lab,
        )

        async def work(job: Job) -> None:
            watcher = self._board.begin(job, layers[-1].url, long=command.long, from_node=True, lab=plan.lab)
            report: Report | None = None
            try:
                report = await check(plan, watcher)
            finally:
                self._board.end(report)

        return Outcome(ok=True, job=self._jobs.start(KIND, layers[-1].url, work))

    async def prepare(self, _command: PrepareHopCheck) -> Outcome:
        """What a check elsewhere needs of this node."""
        parts = self._parts()
        nonce, expires_at_ms = self.nonces.make()
        layers = await self._doors()
        target = self._target(parts)
        return Outcome(
            ok=True,
            value={
                "nonce": nonce,
                "expires_at_ms": expires_at_ms,
                "url": self._ground.settings().public_url,
                "layers": [to_builtins(layer_view(each)) for each in layers],
                "target": "" if target is None else str(target),
                "lab": self._ground.lab,
            },
        )

    async def look(self, command: LookFromOutside) -> Outcome:
        """What a peer sees; ``value`` None where none looks."""
        parts = self._parts()
        outside = self._outlook(parts, command.url or self._advertised())
        found = await outside() if outside is not None else None
        if found is None:
            return Outcome(ok=True)
        value = {
            "status": found.status,
            "headers": [list(each) for each in found.headers],
            "kind": found.kind,
            "problem": found.problem,
        }
        return Outcome(ok=True, value=value)

    async def run(self) -> None:
        """Check by schedule, until cancelled."""
        first = True
        while True:
            interval = self._ground.settings().hop_check_interval
            parts, url = self._network.parts, self._ground.settings().public_url
            if not interval or parts is None or not url:
                self._say(interval, why=_why(interval, parts is not None))
                await self._sleep(_OFF_S)
                continue
            pause = min(interval, FIRST_S) if first else interval
            first = False
            self._say(interval, in_s=pause)
            await self._sleep(pause)
            await self._scheduled(parts, interval)

    async def _scheduled(self, parts: Parts, interval: float) -> None:
        report = await self._quietly(parts)
        if _passing(report) is False and self._passing is not False:
            # Once is nothing: a line that was down for a moment must alarm nobody.
            await self._sleep(min(CONFIRM_S, interval))
            report = await self._quietly(parts)
        passing = _passing(report)
        if passing is False:
            first = report.findings[0]
            self._ground.alerts.raise_alert(
                ALERT,
                summary(report),
                f"{first.effect} `relaydesk check-hop` says what to change",
                subject="edge",
            )
        elif passing:
            self._ground.alerts.clear(ALERT, subject="edge")
        self._passing = passing if passing is not None else self._passing
        self._say(interval, in_s=interval, checked=True, why=summary(report) if passing is None else "")

    async def _quietly(self, parts: Parts) -> Report:
        layers = chain(await self._doors(), (), self._advertised())
        plan = Plan(
            layers,
            await self._tools(parts, BODY_S),
            outside=self._outlook(parts, layers[-1].url),
            from_node=True,
            lab=self._ground.lab,
        )
        return await check(plan, Unwatched())

    def _say(self, interval: float, *, in_s: float = 0.0, checked: bool = False, why: str = "") -> None:
        now = self._ground.clock.wall_ms()
        old = self._board.schedule
        self._board.scheduled(
            HopScheduleView(
                interval,
                safe_text(self._ground.settings().public_url),
                now + round(in_s * 1000) if in_s else 0,
                now if checked else old.last_at_ms,
                self._passing,
                safe_text(why) if why else SafeText(""),
            )
        )

    def _parts(self) -> Parts:
        parts = self._network.parts
        if parts is None:
            if self._network.on:
                door = self._network.door
                raise EnvError("conflict", f"the relay network is closed: {door.problem}", door.hint)
            raise EnvError(
                "conflict", "the relay network is off", "set RELAY_NETWORK=on and start the node anew"
            )
        return parts

    def _advertised(self) -> str:
        url = self._ground.settings().public_url
        if not url:
            raise LocalError(
                "invalid_request",
                "this node advertises no URL",
                "give the URL at which the world is to reach it, or set RELAY_PUBLIC_URL",
                param="url",
            )
        return url

    async def _doors(self) -> tuple[Layer, ...]:
        machine = await asyncio.to_thread(this_machine)
        self._own = own_layers(self._network.listening, machine.addresses)
        return self._own

    async def _tools(self, parts: Parts, body_s: float) -> Tools:
        settings = self._ground.settings()
        trust = await asyncio.to_thread(trusts, settings)
        machine = await asyncio.to_thread(this_machine)
        nonce, _ = self.nonces.make()
        return Tools(
            trust,
            self._ground.clock,
            frozenset(str(each) for each in machine.addresses),
            nonce,
            self._target(parts),
            body_s,
        )

    def _target(self, parts: Parts) -> NodeRef | None:
        """Another operator's node that answers, as far as is known."""
        own = parts.identity.owner_addr
        for peer in parts.asker.peers:
            ref = peer.listed.ref
            if peer.probed and peer.listed.owner != own and not parts.asker.peers.is_down(ref):
                return ref
        return None

    def _outlook(self, parts: Parts, url: str) -> Callable[[], Any] | None:
        """Peers of other operators that could look; only at the URL that directories hold for this node."""
        own = parts.identity.owner_addr
        peers: dict[str, Listed] = {}
        for peer in sorted(parts.asker.peers, key=lambda each: not each.probed):
            if peer.listed.owner != own:
                peers.setdefault(peer.listed.owner, peer.listed)
        if not peers or url != self._ground.settings().public_url:
            return None
        return Outlook(parts.identity, parts.outbound, self._ground.clock, tuple(peers.values()), url).look


@dataclass(frozen=True, slots=True)
class Unwatched:
    """A `Watcher` for a check that nobody looks at."""

    def planned(self, layers: Any, probes: Any) -> None:
        """Nothing."""

    def began(self, layer: Layer, probe: str) -> None:
        """Nothing."""

    def ended(self, layer: Layer, observed: Observation) -> None:
        """Nothing."""


def _passing(report: Report) -> bool | None:
    """Whether the edge passes; None where that cannot be told from here."""
    if any(finding.severity != "info" for finding in report.findings):
        return False
    return None if report.findings else True


def _why(interval: float, up: bool) -> str:
    if not interval:
        return "RELAY_HOP_CHECK_INTERVAL is 0"
    return "no URL is advertised (RELAY_PUBLIC_URL)" if up else "the relay network is not up"

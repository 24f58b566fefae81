"""What fronts see of the relays, and the alerts about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from relaydesk.core.relay.blame import RULES
from relaydesk.core.relay.ref import Listed, NodeRef
from relaydesk.core.relay.reputation import THRESHOLD
from relaydesk.core.relay.version import PROTO_VERSION
from relaydesk.core.text import SafeText, safe_text
from relaydesk.core.view.network import EvidenceView, NetworkModelView, RelaysView, RelayView, Standing
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.relay.asking.choice import Choice
from relaydesk.engine.relay.asking.peers import Peer, Peers
from relaydesk.engine.relay.asking.reputations import Reputations
from relaydesk.engine.relay.exchange.market import NetworkModel

FEW_RELAYS: Final = "few_relays"
VERSION_LAGS: Final = "network_version_lags"
# Through this many or fewer a target is in danger: one relay sees all that is asked of it (design §6).
FEW: Final = 1
# Alerts of one kind; more of them say nothing that these do not, and would push out others.
MOST_ALERTS: Final = 20
# Of models that others offer: a view is sent whole whenever one of them changes.
OFFERS_SHOWN: Final = 500


@dataclass(frozen=True, slots=True)
class Stranger:
    """A node that is known and not used: no directory admits it, or the operator blocked it."""

    listed: Listed
    standing: Standing
    why: str


class RelaysReport:
    """Builds the section ``relays`` and keeps its alerts. ``strangers`` are the nodes that are not used."""

    def __init__(
        self,
        peers: Peers,
        choice: Choice,
        reputations: Reputations,
        alerts: AlertBoard,
        self_listed: Callable[[], Listed | None],
        strangers: Callable[[], Sequence[Stranger]],
    ) -> None:
        self._peers = peers
        self._choice = choice
        self._reputations = reputations
        self._alerts = alerts
        self._self_listed = self_listed
        self._strangers = strangers
        self._alerted: set[NodeRef] = set()

    def view(self, probed_at_ms: int, next_probe_at_ms: int) -> RelaysView:
        """Every node that is known, in the order of their references."""
        shares, counts = self._choice.shares(), self._choice.counts()
        found = {peer.listed.ref: self._relay(peer, shares, counts) for peer in self._peers}
        if own := self._self_listed():
            found[own.ref] = _unused(Stranger(own, "self", "this node"))
        for stranger in self._strangers():
            found.setdefault(stranger.listed.ref, _unused(stranger))
        return RelaysView(tuple(found[ref] for ref in sorted(found)), probed_at_ms, next_probe_at_ms)

    def update(self) -> None:
        """Raise or clear the alerts by how the nodes stand now."""
        self._few(self._choice.counts())
        self._lag()

    def listing_changed(self) -> None:
        """The book is another: an alert about a node that it does not admit any more is over at once.

        New alerts wait for `update`, which comes after a round: a fresh listing says little.
        """
        counts = self._choice.counts()
        over = {ref for ref in self._alerted if counts.get(ref, FEW + 1) > FEW}
        for ref in over:
            self._alerts.clear(FEW_RELAYS, subject=str(ref))
        self._alerted -= over

    def _few(self, counts: Mapping[NodeRef, int]) -> None:
        now = set([ref for ref, count in counts.items() if count <= FEW][:MOST_ALERTS])
        for ref in self._alerted - now:
            self._alerts.clear(FEW_RELAYS, subject=str(ref))
        for ref in sorted(now):
            one = counts[ref] == 1
            self._alerts.raise_alert(
                FEW_RELAYS,
                f"node {ref} can be reached through one relay only"
                if one
                else f"no relay reaches node {ref}",
                "a relay must be of another operator and owner and of the same major version: "
                "add a directory that lists more of them",
                subject=str(ref),
            )
        self._alerted = now

    def _lag(self) -> None:
        newer = self._peers.newer_than_ours()
        if not newer:
            self._alerts.clear(VERSION_LAGS)
            return
        newest = safe_text(self._peers.newest_version(), 32)
        count = len(newer)
        who = "one node speaks" if count == 1 else f"{count} nodes speak"
        self._alerts.raise_alert(
            VERSION_LAGS,
            f"{who} version {newest} of the network's protocol, this one {PROTO_VERSION}",
            "look for a newer relaydesk",
            severity="info",
        )

    def _relay(self, peer: Peer, shares: Mapping[NodeRef, float], counts: Mapping[NodeRef, int]) -> RelayView:
        ref = peer.listed.ref
        known = self._reputations.get(ref)
        tier = self._reputations.tier(ref)
        verified = peer.verified
        details = verified.details if verified is not None else None
        rtt = self._reputations.rtt_ms(ref)
        return RelayView(
            ref=str(ref),
            owner=peer.listed.owner,
            base_url=safe_text(peer.listed.base_url),
            standing="eligible",
            why=peer.problem,
            tier=tier,
            proto_version=safe_text(peer.version, 32) if peer.probed else SafeText(""),
            version=details.version or SafeText("") if details is not None else SafeText(""),
            rtt_ms=None if rtt is None else round(rtt, 1),
            samples=len(self._reputations.latencies.history(ref)),
            history=tuple(round(each) for each in self._reputations.latencies.history(ref)),
            share=round(shares.get(ref, 0.0), 4),
            faults=min(known.faults, THRESHOLD),
            stale=min(known.stale, THRESHOLD),
            unreachable=sum(1 for each in known.evidence if not each.status),
            fault_limit=THRESHOLD,
            demoted_at_ms=known.demotion.since.wall_ms if tier == "demoted" and known.demotion else 0,
            demoted_until_ms=self._reputations.until_ms(ref),
            explanation=safe_text(self._reputations.explain(ref), 512),
            evidence=tuple(
                EvidenceView(
                    each.at_ms,
                    str(each.target),
                    each.status,
                    safe_text(each.code, 64),
                    each.marker,
                    safe_text(RULES.get(each.rule, each.rule)),
                )
                for each in known.evidence
            ),
            last_ok_at_ms=known.last_success_ms or 0,
            probed_at_ms=peer.probed_at_ms,
            models=tuple(safe_text(each.id, 128) for each in details.models) if details is not None else (),
            eligible_relays=counts[ref],
            name=peer.listed.name,
        )


def _unused(stranger: Stranger) -> RelayView:
    listed = stranger.listed
    return RelayView(
        ref=str(listed.ref),
        owner=listed.owner,
        base_url=safe_text(listed.base_url),
        standing=stranger.standing,
        why=safe_text(stranger.why),
        fault_limit=THRESHOLD,
        name=listed.name,
    )


def offers_view(models: Sequence[NetworkModel]) -> tuple[tuple[NetworkModelView, ...], int]:
    """Models that others offer, as fronts see them, and how many more there are."""
    shown = tuple(
        NetworkModelView(
            safe_text(each.id),
            each.input_rate,
            each.output_rate,
            each.context_window,
            each.targets,
            each.relays,
            each.warm,
        )
        for each in models[:OFFERS_SHOWN]
    )
    return shown, len(models) - len(shown)

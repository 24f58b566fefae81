"""Which relay a request goes through: drawn anew for each, by the rules of core (wire §3.1, §3.2)."""

from __future__ import annotations

from collections.abc import Collection

from relaydesk.core.ports import Rng
from relaydesk.core.relay.draw import draw, weights
from relaydesk.core.relay.eligible import Candidate, count_eligible, eligible, exclusion, first_tier
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.version import compatible
from relaydesk.engine.relay.asking.peers import Peer, Peers
from relaydesk.engine.relay.asking.reputations import Reputations


class Choice:
    """Draws relays out of the listed nodes. This node is never one of them."""

    def __init__(self, peers: Peers, reputations: Reputations, rng: Rng) -> None:
        self._peers = peers
        self._reputations = reputations
        self._rng = rng

    def eligible(self, target: NodeRef) -> list[NodeRef]:
        """Every relay through which ``target`` may be asked, whatever its tier; none for a stranger."""
        return [each.ref for each in self._eligible(target)]

    def counts(self) -> dict[NodeRef, int]:
        """Through how many relays each listed node may be asked, whatever their tier."""
        return count_eligible([self._candidate(each) for each in self._peers])

    def draw(self, target: NodeRef, tried: Collection[NodeRef] = (), *, ours: bool = False) -> NodeRef | None:
        """A relay for one attempt that is none of ``tried``, or None where there is none.

        ``ours``: only one that announces the paths of ours.
        """
        left = first_tier([each for each in self._eligible(target, ours=ours) if each.ref not in tried])
        if not left:
            return None
        seed = int.from_bytes(self._rng.token_bytes(8), "big")
        return left[draw([self._reputations.rtt_ms(each.ref, target) for each in left], seed)].ref

    def may_relay(self, relay: NodeRef, target: NodeRef) -> bool:
        """Whether ``relay`` may be asked for ``target``."""
        one, other = self._peers.get(target), self._peers.get(relay)
        if one is None or other is None:
            return False
        return exclusion(self._candidate(one), self._candidate(other)) is None

    def shares(self) -> dict[NodeRef, float]:
        """How likely each relay is drawn next, for a target that excludes none of them."""
        tier = first_tier(
            [each for each in map(self._candidate, self._peers) if compatible(each.proto_version)]
        )
        if not tier:
            return {}
        found = weights([self._reputations.rtt_ms(each.ref) for each in tier])
        return dict(zip((each.ref for each in tier), found, strict=True))

    def _eligible(self, target: NodeRef, *, ours: bool = False) -> list[Candidate]:
        peer = self._peers.get(target)
        if peer is None:
            return []
        relays = (self._candidate(each) for each in self._peers if each.keeps_ledger or not ours)
        return eligible(self._candidate(peer), relays)[0]

    def _candidate(self, peer: Peer) -> Candidate:
        listed = peer.listed
        reachable = self._reputations.tier(listed.ref) == "reachable"
        return Candidate(listed.ref, listed.owner, listed.base_url, peer.version, reachable)

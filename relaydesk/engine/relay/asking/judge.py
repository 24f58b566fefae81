"""What an attempt through a relay shows, and who is charged for it: core's tables, entered into the books.

A relay's word that the target is down is a claim: it falls back on the relay once another reaches the target,
and where nobody does, the target is left alone and no relay is charged (wire §2.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from relaydesk.core.events import RelaysChanged
from relaydesk.core.ports import Rng
from relaydesk.core.relay.blame import (
    CLAIM_REFUTED,
    RULES,
    STALE_EPHEMERAL,
    Evidence,
    Verdict,
    classify,
    narrow,
    probe_blame,
)
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.reputation import Credit, Observation, credit_of
from relaydesk.core.text import safe_text
from relaydesk.core.view.network import Charged, HopView
from relaydesk.engine.bus import Bus
from relaydesk.engine.relay.asking.ask import Ask
from relaydesk.engine.relay.asking.hops import Hops
from relaydesk.engine.relay.asking.peers import Peers
from relaydesk.engine.relay.asking.reputations import Reputations

# Two claims of one owner are one claim.
_OWNERS: Final = 2
# Codes of relays begin so; one that we do not know is no answer of a target.
_RELAY_CODES: Final = "relay_"


@dataclass(slots=True)
class Seen:
    """What there is to judge an attempt by.

    ``status`` 0: no answer. ``connected``: there was a connection to the relay. ``aborted``: our own cancel
    or deadline. ``foreign``: a 2xx that is not the target's own answer. ``detail``: a few words for people.
    """

    at_ms: int
    took_s: float = 0.0
    status: int = 0
    code: str = ""
    marker: bool = False
    connected: bool = False
    aborted: bool = False
    foreign: bool = False
    detail: str = ""


@dataclass(slots=True)
class Judged:
    """An attempt with what was made of it. ``hop`` is its record as it stands now."""

    relay: NodeRef
    target: NodeRef
    hop: HopView
    verdict: Verdict
    credit: Credit | None

    @property
    def claim(self) -> bool:
        """Whether the relay says that the target failed."""
        return self.verdict.attribution == "target"

    @property
    def answered(self) -> bool:
        """Whether the target's own answer came back."""
        return self.credit == "success"


class Judge:
    """Enters every attempt into the hops, the reputations and what is known of targets."""

    def __init__(self, peers: Peers, reputations: Reputations, hops: Hops, rng: Rng, bus: Bus) -> None:
        self._peers = peers
        self._reputations = reputations
        self._hops = hops
        self._rng = rng
        self._bus = bus

    def judge(self, ask: Ask, relay: NodeRef, attempt: int, seen: Seen) -> Judged:
        """Record an attempt that ended, and charge whom it charges by itself."""
        verdict, kind = self._verdict(ask, relay, seen)
        hop = HopView(
            id="hop_" + self._rng.token_bytes(8).hex(),
            at_ms=seen.at_ms,
            purpose=ask.purpose,
            relay=str(relay),
            target=str(ask.target),
            path=ask.path.partition("?")[0],
            status=seen.status,
            code=safe_text(seen.code, 64),
            marker=seen.marker,
            retryable=verdict.retryable,
            attribution=verdict.attribution,
            charged="relay" if kind in ("fault", "unreachable") else "nobody",
            rule=verdict.rule,
            why=safe_text(RULES[verdict.rule] + (f" ({seen.detail})" if seen.detail else "")),
            duration_ms=round(seen.took_s * 1000),
            attempt=attempt,
        )
        judged = Judged(relay, ask.target, hop, verdict, kind)
        self._hops.add(hop)
        if kind is not None:
            self._reputations.credit(relay, kind, _observation(judged))
            self._bus.publish(RelaysChanged())
        if judged.answered:
            self._peers.reached(ask.target)
        return judged

    def refuted(self, tried: Sequence[Judged]) -> None:
        """The target answered: whoever said that it had failed was at fault itself."""
        for each in tried:
            if each.claim:
                self._charge(each, "relay", CLAIM_REFUTED)
                self._reputations.credit(each.relay, "fault", _observation(each))

    def all_failed(self, tried: Sequence[Judged]) -> bool:
        """Nobody reached the target; whether that is the target's doing, which is then left alone.

        Not where relays failed on their own account: a single relay's claim beside them decides nothing.
        """
        claims = [each for each in tried if each.claim]
        owners = {peer.listed.owner for each in claims if (peer := self._peers.get(each.relay))}
        down = bool(claims) and (len(claims) == len(tried) or len(owners) >= _OWNERS)
        if down:
            self._peers.down(tried[0].target)
            for each in claims:
                self._charge(each, "target", each.hop.rule)
            self._bus.publish(RelaysChanged())
        return down

    def details(self, judged: Judged, *, stale: bool) -> None:
        """Verified details came back, stale or fresh; stale ones are used, and count against the relay."""
        if stale:
            self._charge(judged, "relay", STALE_EPHEMERAL)
        self._reputations.details(judged.relay, is_stale=stale, seen=_observation(judged))
        self._bus.publish(RelaysChanged())

    def _verdict(self, ask: Ask, relay: NodeRef, seen: Seen) -> tuple[Verdict, Credit | None]:
        if seen.foreign:
            return Verdict(True, "unknown", "unattributed"), None
        evidence = Evidence(True, seen.marker, self._peers.marks_hops(relay), seen.aborted)
        verdict = narrow(classify(seen.status, seen.code), seen.status, evidence)
        kind = credit_of(verdict, seen.status, seen.code, connected=seen.connected, aborted=seen.aborted)
        if kind == "success" and seen.code.startswith(_RELAY_CODES):
            kind = None
        if ask.purpose != "probe":
            return verdict, kind
        found = probe_blame(seen.status, seen.code, evidence)
        if found.attribution == "relay" != verdict.attribution:
            # Only a reason to ask through another (wire §2.4): an answer with a code charges nobody.
            return Verdict(True, "relay", found.rule), None
        return found, kind

    def _charge(self, judged: Judged, charged: Charged, rule: str) -> None:
        judged.hop = replace(judged.hop, charged=charged, rule=rule, why=safe_text(RULES[rule]))
        self._hops.replace(judged.hop)


def _observation(judged: Judged) -> Observation:
    hop = judged.hop
    return Observation(hop.at_ms, judged.target, hop.status, hop.code, hop.marker, hop.rule)

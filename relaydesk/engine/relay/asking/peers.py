"""What this node knows of each node that a directory lists, from details that were verified.

In memory only. Of a node that was never probed the wire assumes the major version and no more (wire §2.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from relaydesk.core.ports import Clock
from relaydesk.core.relay.records.canonical import RecordError
from relaydesk.core.relay.records.details import Details
from relaydesk.core.relay.records.details_check import check_details
from relaydesk.core.relay.ref import Directory, Listed, NodeRef
from relaydesk.core.relay.version import UNPROBED, marks_hops, newer_than_ours
from relaydesk.core.text import SafeText, safe_text
from relaydesk.engine.relay.fetch_details import read_details

# A target that relay after relay could not reach is left alone this long, doubling up to the longest.
FIRST_BACKOFF_S: Final = 30.0
LONGEST_BACKOFF_S: Final = 600.0
_NONE: Final = SafeText("")
_VERSION: Final = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\..*)?")


@dataclass(frozen=True, slots=True)
class Verified:
    """Details that were checked against the directory; ``stale`` ones may be used all the same."""

    details: Details
    stale: bool
    at_ms: int

    @property
    def sealing_key(self) -> str:
        """The age recipient to seal to."""
        return self.details.ephemeral_age_pubkey or ""

    def usable(self, now_ms: int) -> bool:
        """Whether the key may still be sealed to."""
        return now_ms <= (self.details.ephemeral_expiry or 0) * 1000


@dataclass(slots=True)
class Peer:
    """One listed node. ``version`` is what it advertised, or what an unprobed one counts as.

    ``problem`` says why its last details were not taken, ``tried`` whether a probe was ever begun. Times are
    wall-clock milliseconds, 0 for never; ``down_until`` is monotonic.
    """

    listed: Listed
    version: str = UNPROBED
    verified: Verified | None = None
    problem: SafeText = _NONE
    tried: bool = False
    probed_at_ms: int = 0
    down_until: float = 0.0
    backoff_s: float = 0.0

    @property
    def keeps_ledger(self) -> bool:
        """Whether it announces our ledger, and with it the path of ours as a relay (design §6)."""
        return self.verified is not None and bool(self.verified.details.relaydesk_ledger)

    @property
    def probed(self) -> bool:
        """Whether a probe of it ever succeeded."""
        return self.verified is not None


class Peers:
    """Every listed node but this one."""

    def __init__(self, directory: Directory, self_ref: NodeRef | None, clock: Clock) -> None:
        self._directory = directory
        self.self_ref = self_ref
        self._clock = clock
        self._peers: dict[NodeRef, Peer] = {}

    def __iter__(self) -> Iterator[Peer]:
        """In the order of their references, as the directory lists them now."""
        listed = self._directory.nodes()
        for each in listed:
            if each.ref != self.self_ref:
                yield self._known(each)
        if len(self._peers) > len(listed):
            current = {each.ref for each in listed}
            for ref in [ref for ref in self._peers if ref not in current]:
                del self._peers[ref]

    def get(self, ref: NodeRef) -> Peer | None:
        """One listed node; None for this one and for what is not listed."""
        listed = self._directory.find(ref)
        return None if listed is None or ref == self.self_ref else self._known(listed)

    def _known(self, listed: Listed) -> Peer:
        peer = self._peers.get(listed.ref)
        if peer is None or peer.listed.signing != listed.signing or peer.listed.owner != listed.owner:
            # Another key is another node: nothing that the old one proved counts for it.
            peer = self._peers[listed.ref] = Peer(listed)
        elif peer.listed is not listed:
            peer.listed = listed
        return peer

    def version(self, ref: NodeRef) -> str:
        """The version a node counts as."""
        peer = self._peers.get(ref)
        return peer.version if peer is not None else UNPROBED

    def marks_hops(self, ref: NodeRef) -> bool:
        """Whether a relay itself advertised a version that promises the marker (wire §2.2)."""
        return marks_hops(self.version(ref))

    async def check(self, ref: NodeRef, body: bytes) -> str:
        """Take details that came back through a relay; why they are not that node's, empty where they are.

        Where they are not, what was known before stays.
        """
        try:
            details, unread = await read_details(body), ""
        except RecordError as error:
            details, unread = None, str(error)
        peer = self.get(ref)
        if peer is None:
            return "no directory lists it any more"
        now_ms = self._clock.wall_ms()
        peer.probed_at_ms = now_ms
        try:
            if details is None:
                raise RecordError(unread)
            stale = check_details(details, peer.listed, now_ms // 1000, relayed=True)
        except RecordError as error:
            peer.problem = safe_text(str(error))
            return str(error)
        peer.verified = Verified(details, stale, now_ms)
        peer.version = peer.verified.details.proto_version
        peer.problem = _NONE
        return ""

    def reached(self, ref: NodeRef) -> None:
        """A target's own answer came back: it is not down."""
        if peer := self.get(ref):
            peer.down_until = peer.backoff_s = 0.0

    def down(self, ref: NodeRef) -> None:
        """Relays that did their part could not reach it: leave it alone for a while."""
        if peer := self.get(ref):
            peer.backoff_s = min(peer.backoff_s * 2, LONGEST_BACKOFF_S) or FIRST_BACKOFF_S
            peer.down_until = self._clock.mono() + peer.backoff_s

    def is_down(self, ref: NodeRef) -> bool:
        """Whether a target is being left alone."""
        peer = self._peers.get(ref)
        return peer is not None and peer.down_until > self._clock.mono()

    def newest_version(self) -> str:
        """The highest version that a probed node speaks; empty where none was probed."""
        found = [peer.version for peer in self if peer.probed and _VERSION.fullmatch(peer.version)]
        return max(found, key=_order, default="")

    def newer_than_ours(self) -> list[Peer]:
        """Probed nodes whose version is ahead of this one's."""
        return [peer for peer in self if peer.probed and newer_than_ours(peer.version)]


def _order(version: str) -> tuple[int, int]:
    found = _VERSION.fullmatch(version)
    assert found is not None
    return int(found[1]), int(found[2] or 0)

"""What this node knows of each node that a directory lists, from details that were verified.

In memory only. Of a node that was never probed the wire assumes the major version and no more (wire §2.2).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from relaydesk.core.ports import Clock
from relaydesk.core.relay.address import decode_address
from relaydesk.core.relay.records.canonical import RecordError
from relaydesk.core.relay.records.details import Details, decode_details
from relaydesk.core.relay.records.ephemeral import Holds, check_ephemeral
from relaydesk.core.relay.ref import Directory, Listed, NodeRef
from relaydesk.core.relay.version import UNPROBED, marks_hops, newer_than_ours
from relaydesk.core.text import SafeText, safe_text

# A target that relay after relay could not reach is left alone this long, doubling up to the longest.
FIRST_BACKOFF_S: Final = 30.0
LONGEST_BACKOFF_S: Final = 600.0
_NONE: Final = SafeText("")
_VERSION: Final = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\..*)?")

_REFUSED: Final = {
    Holds.BAD_SIGNATURE: "the advert of its key is not signed by the key that the directory names",
    Holds.FROM_THE_FUTURE: "the advert of its key is from the future: one of the two clocks is wrong",
    Holds.BAD_LIFE: "the advert of its key would hold longer than any may",
    Holds.EXPIRED: "the advert of its key has expired",
}


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
    reached_at_ms: int = 0
    down_until: float = 0.0
    backoff_s: float = 0.0

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

    def check(self, ref: NodeRef, body: bytes) -> str:
        """Take details that came back through a relay; why they are not that node's, empty where they are.

        Where they are not, what was known before stays.
        """
        peer = self.get(ref)
        if peer is None:
            return "no directory lists it any more"
        now_ms = self._clock.wall_ms()
        peer.probed_at_ms = now_ms
        try:
            peer.verified = verified(peer.listed, body, now_ms)
        except RecordError as error:
            peer.problem = safe_text(str(error))
            return str(error)
        peer.version = peer.verified.details.proto_version
        peer.problem = _NONE
        return ""

    def reached(self, ref: NodeRef) -> None:
        """A target's own answer came back: it is not down."""
        if peer := self.get(ref):
            peer.reached_at_ms = self._clock.wall_ms()
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


def verified(listed: Listed, body: bytes, now_ms: int, *, relayed: bool = True) -> Verified:
    """Details of ``listed`` as they were fetched at ``now_ms`` (wire §4.2, §5.1).

    Raises `RecordError`, with a sentence of ours, where they cannot be read, name another node, or advertise
    no key that may be sealed to.
    """
    details = decode_details(body)
    _same_identity(listed, details)
    advert = details.ephemeral
    if advert is None:
        raise RecordError("its details advertise no key")
    try:
        public = decode_address(listed.signing)
    except ValueError as error:
        raise RecordError("the directory names no key of it that could have signed") from error
    holds = check_ephemeral(advert, listed.ref, public, now_ms // 1000, relayed=relayed)
    if not holds.usable:
        raise RecordError(_REFUSED[holds])
    return Verified(details, holds is Holds.STALE, now_ms)


def _same_identity(listed: Listed, details: Details) -> None:
    found = (details.operator_id, details.node_id, details.owner_addr, details.signing_addr)
    wanted = (listed.ref.operator, listed.ref.node, listed.owner, listed.signing)
    names = ("operator", "number", "owner", "signing key")
    wrong = [name for name, a, b in zip(names, found, wanted, strict=True) if a != b]
    if wrong:
        raise RecordError(f"its details name another {' and '.join(_few(wrong))} than the directory")


def _few(names: Collection[str]) -> list[str]:
    return list(names)[:2]


def _order(version: str) -> tuple[int, int]:
    found = _VERSION.fullmatch(version)
    assert found is not None
    return int(found[1]), int(found[2] or 0)

"""Which nodes may relay for a target (wire §3.1).

Nothing else excludes: not models, staging, funding or reputation. What is known to work comes first, and
where nothing is, everything eligible may be tried; where nothing is eligible, nothing is sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.subnet import public_16, same_public_16, url_host
from relaydesk.core.relay.version import OUR_MAJOR, compatible

Exclusion = Literal["same_operator", "same_owner", "incompatible", "same_subnet"]
"""Why a node may not relay for a target. Where several hold, the first in this order is told."""

EXCLUSIONS: Final[dict[Exclusion, str]] = {
    "same_operator": "it belongs to the target's operator",
    "same_owner": "it has the target's owner",
    "incompatible": "it speaks another major version",
    "same_subnet": "it stands in the target's public /16",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node as a caller sees it.

    ``reachable`` means that this caller can use it as a relay by its own evidence: a probe through it
    succeeded and it is not demoted. ``proto_version`` is `version.UNPROBED` before a probe told it.
    """

    ref: NodeRef
    owner: str
    base_url: str
    proto_version: str
    reachable: bool


def exclusion(target: Candidate, node: Candidate, our_major: int = OUR_MAJOR) -> Exclusion | None:
    """Why ``node`` may not relay for ``target``, or None where it may."""
    if node.ref.operator == target.ref.operator:
        return "same_operator"
    if node.owner == target.owner:
        return "same_owner"
    if not compatible(node.proto_version, our_major):
        return "incompatible"
    if same_public_16(url_host(node.base_url), url_host(target.base_url)):
        return "same_subnet"
    return None


def eligible(
    target: Candidate, pool: Iterable[Candidate], our_major: int = OUR_MAJOR
) -> tuple[list[Candidate], dict[NodeRef, Exclusion]]:
    """The nodes that may relay for ``target``, ordered by reference, and why each other one may not."""
    kept: list[Candidate] = []
    reasons: dict[NodeRef, Exclusion] = {}
    for node in pool:
        reason = exclusion(target, node, our_major)
        if reason is None:
            kept.append(node)
        else:
            reasons[node.ref] = reason
    kept.sort(key=lambda node: node.ref)
    return kept, reasons


def count_eligible(nodes: Sequence[Candidate], our_major: int = OUR_MAJOR) -> dict[NodeRef, int]:
    """How many of ``nodes`` may relay for each of them: the lengths of what `eligible` gives.

    In time that grows with the nodes, not with their square: those that a node excludes are found by what
    they share with it.
    """
    relays = [node for node in nodes if compatible(node.proto_version, our_major)]
    sharing: dict[object, set[int]] = defaultdict(set)
    for at, relay in enumerate(relays):
        for shared in _shared(relay):
            sharing[shared].add(at)
    known: dict[tuple[object, ...], int] = {}
    found: dict[NodeRef, int] = {}
    for node in nodes:
        key = _shared(node)
        if key not in known:
            known[key] = len(relays) - len(set().union(*(sharing.get(shared, ()) for shared in key)))
        found[node.ref] = known[key]
    return found


def _shared(node: Candidate) -> tuple[object, ...]:
    """What a node and a relay of it must not have in common."""
    subnet = public_16(url_host(node.base_url))
    common: tuple[object, ...] = (("operator", node.ref.operator), ("owner", node.owner))
    return common if subnet is None else (*common, ("subnet", subnet))


def first_tier(nodes: Sequence[Candidate]) -> list[Candidate]:
    """The reachable ones where there are any, else all: a cold start, or nothing works."""
    return [node for node in nodes if node.reachable] or list(nodes)

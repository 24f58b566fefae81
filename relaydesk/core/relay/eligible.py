"""Which nodes may relay for a target (wire §3.1).

Nothing else excludes: not models, staging, funding or reputation. What is known to work comes first, and
where nothing is, everything eligible may be tried; where nothing is eligible, nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.subnet import same_public_16, url_host
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


def first_tier(nodes: Sequence[Candidate]) -> list[Candidate]:
    """The reachable ones where there are any, else all: a cold start, or nothing works."""
    return [node for node in nodes if node.reachable] or list(nodes)

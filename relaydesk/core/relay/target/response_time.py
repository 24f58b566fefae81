"""The selection reordered by how soon each node may be expected to have answered (wire §3.4, app-side).

Nodes that differ by less than a band keep their price order, so that a few milliseconds buy nobody a dearer
answer. What the network's own steps decided stays: only nodes of one group change places.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Final

from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.selection import Selection

BAND_MS: Final = 500
# The length of the answer that speeds are compared by.
_TYPICAL_TOKENS: Final = 128


@dataclass(frozen=True, slots=True)
class Timing:
    """What is known of a node: milliseconds there and back, until its first token, and tokens a second."""

    rtt_ms: float
    ttft_ms: float
    tokens_per_second: float


def band(timing: Timing) -> int | None:
    """Which band of `BAND_MS` the end of a typical answer falls into; None where the figures say nothing."""
    if not timing.tokens_per_second > 0:
        return None
    expected = timing.rtt_ms + timing.ttft_ms + _TYPICAL_TOKENS / timing.tokens_per_second * 1000
    # Half a band rounds up, for every band: Python's own rounding would take the even one.
    return math.floor(expected / BAND_MS + 0.5) if math.isfinite(expected) and expected >= 0 else None


def by_response_time(selection: Selection, timings: Mapping[NodeRef, Timing]) -> Selection:
    """Sort each group by its bands, price order kept within one. A node without a timing is in the median."""
    known = {
        node.ref: found
        for node in selection.nodes
        if (timing := timings.get(node.ref)) is not None and (found := band(timing)) is not None
    }
    if not known:
        return selection
    middle = median_low(known.values())
    pairs = sorted(
        zip(selection.groups, selection.nodes, strict=True),
        key=lambda pair: (pair[0], known.get(pair[1].ref, middle)),
    )
    return replace(selection, nodes=tuple(node for _, node in pairs))

"""Which nodes to ask for a request, in which order, and why there is none (wire §3.4).

The steps and their order are the network's, so that every caller chooses alike. What only this node knows
(how quickly a node answered) comes after, in `response_time`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.candidate import Candidate
from relaydesk.core.relay.target.constraints import Constraints
from relaydesk.core.relay.version import compatible

Block = Literal[
    "provider_pin_blocked",
    "image_endpoint_unsupported",
    "version_blocked",
    "tee_blocked",
    "staging_blocked",
    "signer_underfunded_blocked",
    "price_blocked",
    "tool_unsupported",
    "affinity_blocked",
]
# What explains an empty selection: nobody serves the model, nobody has room, or the step that was the last.
Reason = Literal["not_served", "too_large", Block]

_Keep = Callable[[Candidate], bool]


@dataclass(frozen=True, slots=True)
class SizingMiss:
    """A node that a request is too large for. ``max_output`` is what was asked of it; 0: not declared."""

    ref: NodeRef
    context_window: int
    max_output_tokens: int
    max_output: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The nodes to ask, in order.

    ``groups`` has a number for each, never falling: those of one number differ in their price alone, and may
    be reordered among themselves. ``served_by`` counts the nodes that serve the model at all.
    """

    nodes: tuple[Candidate, ...]
    groups: tuple[int, ...] = ()
    served_by: int = 0
    misses: tuple[SizingMiss, ...] = ()
    blocked: Block | None = None

    @property
    def reason(self) -> Reason | None:
        """Why there is no node, None where there is one."""
        if self.nodes:
            return None
        if not self.served_by:
            return "not_served"
        return self.blocked or "too_large"


def select_targets(
    nodes: Iterable[Candidate], constraints: Constraints, preferred: Candidate | None = None
) -> Selection:
    """Choose among ``nodes``. ``preferred`` is the node that an earlier turn of the conversation went to."""
    hints = constraints.hints
    served = [node for node in nodes if node.serves(constraints.model)]
    none = Selection((), served_by=len(served))
    admitted = [node for node in served if hints.admits(node.ref)]
    if not admitted and (hints.only or hints.ignore):
        return replace(none, blocked="provider_pin_blocked")
    pool: list[Candidate] = []
    misses: list[SizingMiss] = []
    for node in admitted:
        if constraints.fit(node):
            pool.append(node)
        else:
            misses.append(_miss(node, constraints))
    none = replace(none, misses=tuple(misses))
    if not pool:
        return none
    for block, keep in _gates(constraints):
        pool = [node for node in pool if keep(node)]
        if not pool:
            return replace(none, blocked=block)
    return _with_affinity(_in_order(pool, constraints, none), constraints, preferred)


def _miss(node: Candidate, constraints: Constraints) -> SizingMiss:
    declared = node.capacity(constraints.model)
    return SizingMiss(
        node.ref, declared.context_window, declared.max_output_tokens, constraints.output_for(node)
    )


def _gates(constraints: Constraints) -> Iterator[tuple[Block, _Keep]]:
    """What a node must pass, in the order that says which of them explains that none did."""
    model = constraints.model
    if constraints.on_image_route:
        yield "image_endpoint_unsupported", lambda node: constraints.serves_route(node.capacity(model))
    yield "version_blocked", lambda node: compatible(node.proto_version)
    if constraints.require_tee:
        yield "tee_blocked", lambda node: node.tee_attested
    if not constraints.allow_staging:
        yield "staging_blocked", lambda node: not node.staging
    yield "signer_underfunded_blocked", lambda node: not node.underfunded
    if not constraints.on_image_route:
        # The ceilings are for tokens.
        yield "price_blocked", lambda node: constraints.within_ceilings(node.capacity(model))
    if constraints.hints.require_tools:
        yield "tool_unsupported", constraints.offers_tools


def _in_order(pool: list[Candidate], constraints: Constraints, none: Selection) -> Selection:
    """The cheapest first, behind nodes that offer more of what is asked for and those the caller names."""
    hints = constraints.hints

    def lacks(node: Candidate) -> int:
        images = constraints.offers_image_tools(node.capacity(constraints.model))
        return 2 * (not images) + (not constraints.offers_tools(node))

    ranked = sorted(pool, key=lambda node: (lacks(node), constraints.price_order(node)))
    named: dict[NodeRef, Candidate] = {}
    for reference in hints.order:
        named |= {node.ref: node for node in ranked if node.ref not in named and reference.matches(node.ref)}
    if hints.order and not hints.allow_fallbacks:
        if not named:
            return replace(none, blocked="provider_pin_blocked")
        rest: list[Candidate] = []
    else:
        rest = [node for node in ranked if node.ref not in named]
    groups = (*range(len(named)), *(len(named) + lacks(node) for node in rest))
    return replace(none, nodes=(*named.values(), *rest), groups=groups)


def _with_affinity(chosen: Selection, constraints: Constraints, preferred: Candidate | None) -> Selection:
    """Put the preferred node first, or have it alone where it is a must.

    Of the steps before only those are repeated for it that the network repeats: that it serves the model, the
    caller's hard choices, the size and the funding.
    """
    if chosen.blocked or constraints.affinity == "none":
        return chosen
    if preferred is None or not preferred.serves(constraints.model):
        return chosen
    strict = constraints.affinity == "strict"
    ref = preferred.ref
    fits = constraints.fit(preferred)
    excluded = not constraints.hints.admits(ref) or constraints.hints.pins_out(ref)
    if strict:
        if excluded or not fits:
            return replace(chosen, nodes=(), groups=(), blocked="affinity_blocked")
        if preferred.underfunded:
            return replace(chosen, nodes=(), groups=(), blocked="signer_underfunded_blocked")
        return replace(chosen, nodes=(preferred,), groups=(0,))
    if excluded or not fits or preferred.underfunded:
        return chosen
    pairs = zip(chosen.nodes, chosen.groups, strict=True)
    rest = [(node, group + 1) for node, group in pairs if node.ref != ref]
    nodes = (preferred, *(node for node, _ in rest))
    return replace(chosen, nodes=nodes, groups=(0, *(group for _, group in rest)))

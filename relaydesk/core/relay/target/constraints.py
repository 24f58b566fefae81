"""What one request needs of the node that serves it, and what it would cost there (wire §3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from relaydesk.core.relay.bound.reserve_count import MAX_OUTPUT_CEILING, derive_max_output
from relaydesk.core.relay.target.candidate import Candidate, Capacity
from relaydesk.core.relay.target.hints import NO_HINTS, Hints
from relaydesk.core.relay.version import TIGHT_BOUND, at_least

AffinityPolicy = Literal["none", "prefer", "strict"]

IMAGE_GENERATIONS: Final = "/v1/images/generations"
IMAGE_EDITS: Final = "/v1/images/edits"
# Weighed where nothing was measured or stated: both axes alike.
_TYPICAL_TOKENS: Final = 1000


@dataclass(frozen=True, slots=True)
class Constraints:
    """One request.

    ``input_tokens`` is its bound by version 1, ``input_tokens_v2`` by version 2 (0: not measured);
    ``max_output_tokens`` None: the caller stated none. ``image_tool_budget`` and ``image_edit_tool_budget``
    count images that tools may make.
    """

    model: str
    input_tokens: int = 0
    input_tokens_v2: int = 0
    max_output_tokens: int | None = None
    max_output_ceiling: int = MAX_OUTPUT_CEILING
    endpoint: str = "/v1/chat/completions"
    require_tee: bool = False
    allow_staging: bool = False
    requested_tools: tuple[str, ...] = ()
    image_tool_budget: int = 0
    image_edit_tool_budget: int = 0
    affinity: AffinityPolicy = "none"
    hints: Hints = NO_HINTS

    @property
    def on_image_route(self) -> bool:
        """Whether it is priced by the image."""
        return self.endpoint in (IMAGE_GENERATIONS, IMAGE_EDITS)

    def input_for(self, node: Candidate) -> int:
        """The input bound that a node's reserve is measured with: version 2 where it knows that."""
        tight = self.input_tokens_v2 and at_least(node.proto_version, *TIGHT_BOUND)
        return self.input_tokens_v2 if tight else self.input_tokens

    def output_for(self, node: Candidate) -> int:
        """The most output that is reserved at a node: as stated, else what the node's declaration gives."""
        if self.max_output_tokens is not None:
            return self.max_output_tokens
        declared = node.capacity(self.model)
        return derive_max_output(declared.context_window, declared.max_output_tokens, self.max_output_ceiling)

    def fit(self, node: Candidate) -> bool:
        """Whether the request is within what the node declares."""
        return node.fits(self.model, self.input_for(node), self.output_for(node))

    def serves_route(self, capacity: Capacity) -> bool:
        """Whether the endpoint, if it is an image route, is served."""
        if self.endpoint == IMAGE_GENERATIONS:
            return capacity.serves_image_gen
        return capacity.serves_image_edit if self.endpoint == IMAGE_EDITS else True

    def within_ceilings(self, capacity: Capacity) -> bool:
        """Whether the rates are within the caller's ceilings. A rate that is not declared is within none."""
        pairs = (
            (capacity.input_rate, self.hints.max_input_rate),
            (capacity.output_rate, self.hints.max_output_rate),
        )
        return all(ceiling is None or 0 < rate <= ceiling for rate, ceiling in pairs)

    def price_order(self, node: Candidate) -> tuple[float, int, int]:
        """Sorts the cheapest first, then by operator and node.

        By tokens: what the request is expected to cost, weighed alike for every node; a rate of 0 cannot be
        told from one that is not declared and comes last. By images: the rate, where 0 is free.
        """
        capacity = node.capacity(self.model)
        if self.endpoint == IMAGE_GENERATIONS:
            return capacity.image_rate, *node.ref
        if self.endpoint == IMAGE_EDITS:
            return capacity.image_edit_rate, *node.ref
        if not capacity.input_rate or not capacity.output_rate:
            return float("inf"), *node.ref
        input_tokens = self.input_tokens_v2 or self.input_tokens or _TYPICAL_TOKENS
        output_tokens = self.max_output_tokens or _TYPICAL_TOKENS
        return capacity.input_rate * input_tokens + capacity.output_rate * output_tokens, *node.ref

    def offers_image_tools(self, capacity: Capacity) -> bool:
        """Whether a tool that images were budgeted for is offered; without a budget every node does."""
        if not self.image_tool_budget and not self.image_edit_tool_budget:
            return True
        made = self.image_tool_budget and capacity.offers_image_gen_tool
        return bool(made or (self.image_edit_tool_budget and capacity.offers_image_edit_tool))

    def offers_tools(self, node: Candidate) -> bool:
        """Whether every tool of the node's own that the request names is offered."""
        return all(tool in node.builtin_tools for tool in self.requested_tools)

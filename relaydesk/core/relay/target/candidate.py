"""A node that may serve, as its directory entry and its details describe it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from relaydesk.core.relay.ref import NodeRef

# A node whose signing account is known to hold less cannot pay for settling (wire §3.4). MicroALGO; without
# a chain nobody's balance is known, and unknown passes.
LEAST_SPENDABLE: Final = 5_000_000


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a node declares of one model. 0 is not declared, of an image's rate: free.

    ``input_rate`` and ``output_rate`` are microUSDC per 1,000,000 tokens, the image rates microUSDC an image.
    """

    context_window: int = 0
    max_output_tokens: int = 0
    input_rate: int = 0
    output_rate: int = 0
    serves_image_gen: bool = False
    serves_image_edit: bool = False
    offers_image_gen_tool: bool = False
    offers_image_edit_tool: bool = False
    image_rate: int = 0
    image_edit_rate: int = 0


UNDECLARED: Final = Capacity()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One node. ``models`` is what it serves now: empty serves nothing. ``spendable`` None is not known."""

    ref: NodeRef
    proto_version: str
    models: Collection[str]
    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    builtin_tools: Collection[str] = ()
    tee_attested: bool = False
    staging: bool = False
    spendable: int | None = None

    def serves(self, model: str) -> bool:
        """Whether the node lists the model."""
        return model in self.models

    def capacity(self, model: str) -> Capacity:
        """What it declares of the model, if anything."""
        return self.capacities.get(model, UNDECLARED)

    def fits(self, model: str, input_tokens: int, output_tokens: int) -> bool:
        """Whether a request of this size is within what the node declares; without a declaration it is."""
        declared = self.capacity(model)
        if declared.context_window and input_tokens + output_tokens > declared.context_window:
            return False
        return not declared.max_output_tokens or output_tokens <= declared.max_output_tokens

    @property
    def underfunded(self) -> bool:
        """Whether its signing account is known to hold too little."""
        return self.spendable is not None and self.spendable < LEAST_SPENDABLE

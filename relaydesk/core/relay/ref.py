"""How nodes of the network are known, and the directory that says which there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from relaydesk.core.text import SafeText

_NAMELESS: Final = SafeText("")


class NodeRef(NamedTuple):
    """A node: its operator's id and its number within that operator. Both are unsigned 64-bit (wire §1.3)."""

    operator: int
    node: int

    def __str__(self) -> str:
        return f"{self.operator}:{self.node}"


@dataclass(frozen=True, slots=True)
class Listed:
    """A node that may be used, as the directory lists it.

    ``owner`` and ``signing`` are addresses (wire §4.1), ``base_url`` has no trailing slash; ``staging`` nodes
    serve nobody but relay (wire §3.1). ``name`` is what a directory's keeper calls the operator.
    """

    ref: NodeRef
    owner: str
    signing: str
    base_url: str
    staging: bool = False
    name: SafeText = _NAMELESS


class Directory(Protocol):
    """Which nodes there are. What it does not list is unknown and never used (design §6)."""

    def nodes(self) -> tuple[Listed, ...]:
        """Every admitted node, in the order of their references."""
        ...

    def find(self, ref: NodeRef) -> Listed | None:
        """One admitted node, or None where none has this reference."""
        ...

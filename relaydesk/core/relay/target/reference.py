"""A caller's word for an operator or one of its nodes: ``"7"`` or ``"7:2"`` (wire §3.4)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from relaydesk.core.relay.ref import NodeRef

_TEXT: Final = re.compile(r"\s*([0-9]{1,20})\s*(?::\s*([0-9]{1,20})\s*)?", re.ASCII)
_MAX_ID: Final = 2**64 - 1


class Reference(NamedTuple):
    """``node`` None stands for every node of the operator. 0 is a node like any other."""

    operator: int
    node: int | None = None

    def matches(self, ref: NodeRef) -> bool:
        """Whether this names the node ``ref``."""
        return self.operator == ref.operator and self.node in (None, ref.node)


def parse_reference(text: str) -> Reference | None:
    """What ``text`` names, None where it is no reference: anything but decimal unsigned 64-bit numbers."""
    found = _TEXT.fullmatch(text) if len(text) <= 64 else None
    if found is None:
        return None
    numbers = [int(digits) for digits in found.groups() if digits is not None]
    return Reference(*numbers) if max(numbers) <= _MAX_ID else None

"""What is asked of a target through relays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from relaydesk.core.relay.hop import LEDGER_PATH
from relaydesk.core.relay.ref import NodeRef

Purpose = Literal["probe", "reserve", "inference", "ledger"]

# Until the head of an answer: what is asked before paying is answered at once, a model may think (wire §1.3).
QUICK_HEAD_S: Final = 30.0
LONG_HEAD_S: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request. ``path`` is the inner path, ``head_s`` the seconds until an answer begins.

    ``check``: given the body of a 2xx (at most ``check_limit`` bytes), it says why that is not the target's
    own answer, empty where it is; such an attempt counts as failed, by nobody's fault.
    """

    target: NodeRef
    path: str
    purpose: Purpose
    method: Literal["GET", "POST"] = "POST"
    body: bytes = field(default=b"", repr=False)
    content_type: str = ""
    accept: str = ""
    head_s: float = QUICK_HEAD_S
    check: Callable[[NodeRef, bytes], Awaitable[str]] | None = None
    check_limit: int = 0

    @property
    def ours(self) -> bool:
        """Whether the path is none of the wire's: only relays that announce it take it."""
        return self.path == LEDGER_PATH

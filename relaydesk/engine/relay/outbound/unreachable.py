"""Why another node could not be asked."""

from __future__ import annotations

from typing import Literal

Kind = Literal["resolve", "refused_address", "connect", "tls", "timeout", "broken"]


class UnreachableError(Exception):
    """No answer came, or none that can be read.

    ``reason`` is short and names neither host nor address: it may be logged and counted.
    """

    def __init__(self, kind: Kind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason

"""Why a document, a record or a certificate does not count."""

from __future__ import annotations

from typing import Literal

from relaydesk.core.errors import PeerError

Kind = Literal[
    "too_large",
    "malformed",
    "wrong_key",
    "bad_signature",
    "expired",
    "future",
    "rollback",
    "conflict",
    "not_admitted",
    "base_url",
    "not_seen",
    "not_a_directory",
    "identity",
    "busy",
    "full",
]


class Refused(PeerError):
    """``kind`` is for programs, the fault's sentence for people; it quotes nothing that was not made safe."""

    def __init__(self, kind: Kind, message: str, hint: str = "") -> None:
        super().__init__("directory_refused", message, hint)
        self.kind: Kind = kind

    @property
    def sentence(self) -> str:
        """Message and next step."""
        return self.fault.sentence

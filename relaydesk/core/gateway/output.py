"""How a dialect says an answer: the one thing every front of the gateway makes its own.

A run reads pieces from an engine and hands them to an `Output`; what comes back goes to the client as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.answer import Answer
from relaydesk.core.gateway.piece import Piece
from relaydesk.core.gateway.usage import Usage


class Identity(msgspec.Struct, frozen=True):
    """What every part of one answer shares. ``created_ms`` is in milliseconds since 1970.

    ``token`` is random and names the answer; each dialect puts its own prefix before it.
    """

    token: str
    model: str
    created_ms: int

    @property
    def created(self) -> int:
        """Seconds since 1970."""
        return self.created_ms // 1000


class Spent(msgspec.Struct, frozen=True):
    """Where an answer's time went, in nanoseconds.

    ``load``: the model's load, 0 where it was warm; ``prompt``: from the slot to the first token;
    ``answer``: from the first token to the last; ``total``: since the request was accepted.
    """

    total: int = 0
    load: int = 0
    prompt: int = 0
    answer: int = 0


class Output(Protocol):
    """One answer in one dialect. Used either for a stream or for a whole body, once. Pure.

    ``media_type`` is the stream's; ``heartbeat`` is what fills silence there, empty for nothing.
    """

    @property
    def media_type(self) -> str: ...
    @property
    def heartbeat(self) -> bytes: ...

    def piece(self, choice: int, piece: Piece) -> bytes:
        """The frames of one choice's next piece. Whatever opens a stream goes before the first of them."""
        ...

    def close(self, usage: Usage, spent: Spent) -> bytes:
        """The last frames, once every choice has finished."""
        ...

    def error(self, fault: Fault) -> bytes:
        """The last frame of a stream that failed after its headers; nothing follows it."""
        ...

    def whole(self, answers: Sequence[Answer], usage: Usage, spent: Spent) -> bytes:
        """The body of an answer that is not streamed, choices in order."""
        ...

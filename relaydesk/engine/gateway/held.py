"""What a run needs of the engine that it holds, whoever's it is."""

from __future__ import annotations

from typing import Protocol

from relaydesk.core.errors import Fault
from relaydesk.engine.infer.engine import Engine
from relaydesk.engine.pool.slot_queue import SlotQueue


class Held(Protocol):
    """One request's hold on an engine: a `Lease` of the pool's, or one of the relay network's models."""

    @property
    def slots(self) -> SlotQueue: ...
    @property
    def fault(self) -> Fault | None:
        """Why the engine has ended under its request, None while it has not."""
        ...

    @property
    def engine(self) -> Engine: ...
    @property
    def alias(self) -> str:
        """The name the engine knows the model by."""
        ...

    @property
    def extensions(self) -> bool:
        """Whether it takes llama.cpp's fields beside OpenAI's."""
        ...

    async def why(self, fault: Fault) -> Fault:
        """The reason behind a fault seen on this engine's connection."""
        ...

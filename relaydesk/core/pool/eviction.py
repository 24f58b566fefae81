"""Which loaded models make room for another.

Whether the model can ever fit is decided before anything is unloaded: a pool that unloads first and finds
out afterwards unloads for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["load", "evict", "wait", "blocked", "never"]


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that holds memory now.

    ``bytes`` is what unloading it gives back, ``last_used`` monotonic seconds of the end of its last
    request (of its load, if none), ``in_flight`` the requests it is answering, ``pinned`` that the operator
    wants it to stay (kept alive for ever, or preloaded).
    """

    name: str
    bytes: int
    last_used: float
    in_flight: int = 0
    pinned: bool = False

    @property
    def idle(self) -> bool:
        """Nobody is being answered by it. Pinned models can be idle too."""
        return self.in_flight == 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with a model that wants to be loaded.

    ``load`` now; ``evict`` the ``victims`` first; ``wait`` until models in use fall idle; ``blocked`` by
    pinned models; ``never``: more than there is.
    """

    verdict: Verdict
    victims: tuple[str, ...] = ()

    @property
    def now(self) -> bool:
        """It can be loaded without waiting for anybody."""
        return self.verdict in ("load", "evict")


def choose_victims(loaded: Sequence[LoadedModel], need: int, free: int) -> tuple[str, ...] | None:
    """Names to unload so that ``need`` bytes fit, in that order; ``()`` if they fit already.

    Only models that are idle and not pinned, the longest unused first, and none that is not needed for it:
    a small old model is spared where the next one alone makes the room. None if even all of them would not
    do: then nothing may be unloaded.
    """
    missing = need - free
    if missing <= 0:
        return ()
    candidates = sorted(
        (model for model in loaded if model.idle and not model.pinned and model.bytes > 0),
        key=lambda model: (model.last_used, model.name),
    )
    taken: list[LoadedModel] = []
    gained = 0
    for model in candidates:
        if gained >= missing:
            break
        taken.append(model)
        gained += model.bytes
    if gained < missing:
        return None
    # The last one taken is always needed. Of the others spare the most recently used first.
    for model in reversed(taken[:-1]):
        if gained - model.bytes >= missing:
            taken.remove(model)
            gained -= model.bytes
    return tuple(model.name for model in taken)


def decide(loaded: Sequence[LoadedModel], need: int, free: int, total: int) -> Decision:
    """What to do for a model of ``need`` bytes with ``free`` bytes now and ``total`` at the very best."""
    if need > total:
        return Decision("never")
    victims = choose_victims(loaded, need, free)
    if victims is not None:
        return Decision("evict" if victims else "load", victims)
    in_time = free + sum(model.bytes for model in loaded if not model.pinned)
    return Decision("wait" if in_time >= need else "blocked")

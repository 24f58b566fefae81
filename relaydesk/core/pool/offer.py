"""Whether strangers of the relay network may use a model now, how many, and else why not (design §6)."""

from __future__ import annotations

from relaydesk.core.pool.model import EngineKind

# One slot is always the household's.
LEAST_SLOTS = 2


def most_strangers(slots: int, share: int | None) -> int:
    """How many strangers may hold one of ``slots`` at once; ``share`` is the setting, None for half."""
    return min(slots // 2 if share is None else share, slots - 1)


def unoffered(kind: EngineKind, slots: int | None, *, completion: bool, share: int | None) -> str:
    """Why a model that is to be offered is not, as words without a full stop; empty where it is.

    ``slots`` are those of its engine, None while none is loaded.
    """
    if kind == "url":
        return "a model of another server is never offered"
    if not completion:
        return "it writes no text"
    if share == 0:
        return "the network may hold no slot here (RELAY_NETWORK_SLOTS=0)"
    if slots is None:
        return "it is not loaded: strangers never load a model"
    if slots < LEAST_SLOTS:
        return "it is loaded with one slot, which is the household's: two or more count from its next load"
    return ""

"""Whether strangers of the relay network may use a model now, how many, and else why not (design §6)."""

from __future__ import annotations

from relaydesk.core.pool.model import EngineKind

FOR_EVER = -1
_NOT_LOADED = "it is not loaded: strangers never load a model"
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
        return _NOT_LOADED
    if slots < LEAST_SLOTS:
        return "it is loaded with one slot, which is the household's: two or more count from its next load"
    return ""


def until_offered(name: str, why: str, *, preload: bool, keep_alive_s: int) -> str:
    """The sentence, without a full stop, for a model that is to be offered and is not, with the next step.

    ``why`` is what `unoffered` said, ``keep_alive_s`` how long the model stays loaded when idle.
    """
    if why != _NOT_LOADED:
        return f"{name} is not offered: {why}"
    said = f"{name} is not offered until it is loaded: `relaydesk model load {name}`"
    missing = ["--preload"] if not preload else []
    missing += ["--keep-alive forever"] if keep_alive_s != FOR_EVER else []
    if not missing:
        return said
    return f"{said}; `relaydesk model set {name} {' '.join(missing)}` keeps it so"

"""The settings that bound the pool, as they are in force now."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """``load_timeout_s`` for one engine's start, ``keep_alive_s`` of models that set none (-1: for ever),
    ``queue`` requests that may wait for a slot of one model.
    """

    load_timeout_s: float
    keep_alive_s: int
    queue: int

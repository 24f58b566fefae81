"""How an engine picks each token: the settings that every route takes, checks and passes on alike."""

from __future__ import annotations

from typing import Any, Final

import msgspec


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """The settings themselves, None where the engine's own stand. Requests and engine bodies extend it."""

    seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repeat_penalty: float | None = None
    repeat_last_n: int | None = None
    typical_p: float | None = None


# The engine sets memory aside for each: 4 bytes, for no more tokens than there are in most contexts.
MAX_LAST: Final = 128 * 1024

_SEEDS: Final = 2**32
# The engine reads this seed as "choose one".
_RANDOM_SEED: Final = 2**32 - 1
_FIELDS: Final = Sampling.__struct_fields__


def sampling_of(source: Sampling) -> dict[str, Any]:
    """The settings of one record, as keywords for another."""
    return {name: getattr(source, name) for name in _FIELDS}


def engine_sampling(source: Sampling, choice: int) -> dict[str, Any]:
    """The settings as an engine takes them for one choice."""
    own = {"seed": choice_seed(source.seed, choice), "repeat_last_n": last_n(source.repeat_last_n)}
    return sampling_of(source) | own


def choice_seed(seed: int | None, choice: int) -> int | None:
    """The seed of one choice: the client's plus the choice's number, in the engine's 32 bits.

    A seed that means "choose one" to the engine stands for a fixed one here: the client asked for it.
    """
    if seed is None:
        return None
    value = (seed + choice) % _SEEDS
    return 0 if value == _RANDOM_SEED else value


def last_n(asked: int | None) -> int | None:
    """``repeat_last_n`` as the engine takes it: -1, which stands for all, is no number to it any more."""
    return MAX_LAST if asked == -1 else asked

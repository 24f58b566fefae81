"""Which of an engine's slots a request gets, and whether the slot's cached prompt may serve it.

An engine keeps each slot's last prompt and skips what a new one shares with it. Left alone that tells one
key what another asked, by the count of cached tokens and by the time to the first token. So the gateway
picks the slot itself and allows the cache only where the same key used the slot last (design §5).
"""

from __future__ import annotations

from typing import NamedTuple


class Slot(NamedTuple):
    """A slot taken: its number in the engine, and whether its cached prompt is this key's own."""

    number: int
    may_reuse_cache: bool


def stranger_may_take(*, free: int, held: int, most: int, waiting: int) -> bool:
    """Whether a stranger may take a slot: the household comes first (design §6).

    ``free`` slots there are, ``held`` by strangers, of whom ``most`` may hold one; ``waiting`` requests of
    the household. A stranger never takes the last free slot.
    """
    return waiting == 0 and held < most and free > 1


def idle_for_strangers(*, free: int, held: int, most: int, waiting: int) -> int:
    """How many more strangers would get a slot now; as in `stranger_may_take`."""
    return 0 if waiting else max(0, min(most - held, free - 1))


class SlotTable:
    """The slots of one loaded engine. A key of ``""`` is nobody's: it never shares a cache."""

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError("an engine has at least one slot")
        self._last_key = [""] * count
        self._last_use = [0] * count
        self._free = [True] * count
        self._uses = 0

    @property
    def count(self) -> int:
        """How many slots there are."""
        return len(self._free)

    @property
    def busy(self) -> int:
        """How many are taken."""
        return self._free.count(False)

    @property
    def free(self) -> int:
        """How many are not."""
        return self._free.count(True)

    def take(self, key: str) -> Slot | None:
        """Take a slot, or None where all are taken.

        Best is one this key used last (newest first: most of its conversation is still there), then one
        nobody used, then the one unused for longest, so that other keys' caches live as long as they can.
        """
        free = [index for index, is_free in enumerate(self._free) if is_free]
        if not free:
            return None
        own = [index for index in free if key and self._last_key[index] == key]
        if own:
            index = max(own, key=lambda each: self._last_use[each])
        else:
            index = min(free, key=lambda each: self._last_use[each])
        reuse = bool(own)
        self._uses += 1
        self._free[index] = False
        self._last_key[index] = key
        self._last_use[index] = self._uses
        return Slot(index, reuse)

    def give(self, index: int) -> None:
        """Give a slot back. Raises `ValueError` for one that is not taken: a leak elsewhere."""
        if self._free[index]:
            raise ValueError(f"slot {index} is free already")
        self._free[index] = True

"""This node's short-lived age keys: the one advertised, and those that still open what was sealed to them.

In memory only: a restart makes every key before it useless, which is their whole point.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from relaydesk.core.ports import Age, AgeIdentity, Clock
from relaydesk.core.relay.records.ephemeral import KEEP_S, LIFE_S, ROTATE_S, SKEW_S, Ephemeral

# How often retired keys are looked over.
_LOOK_S: Final = 10.0
# A clock that jumps back and forth makes new keys; not more of them than this are kept.
_KEPT: Final = 8


@dataclass(slots=True)
class _Key:
    identity: AgeIdentity
    advert: Ephemeral
    retired_at: float = 0.0


class Ephemerals:
    """The keys; run it as a service, so that retired ones go.

    ``advertise`` signs an advert of an age key: recipient, issued at, expiry, in seconds since 1970.
    """

    name = "network keys"

    def __init__(self, age: Age, advertise: Callable[[str, int, int], Ephemeral], clock: Clock) -> None:
        self._age = age
        self._advertise = advertise
        self._clock = clock
        self._current: _Key | None = None
        self._retired: list[_Key] = []

    def advert(self) -> Ephemeral:
        """The advert to give out now: of a new key where the last one is due, or the clock has jumped."""
        now = self._clock.wall_ms() // 1000
        key = self._current
        if key is None or not key.advert.issued_at - SKEW_S <= now < key.advert.issued_at + ROTATE_S:
            key = self._turn(now)
        return key.advert

    def open(self, ciphertext: bytes) -> bytes:
        """What was sealed to a key that is still kept. Raises `ValueError`.

        Costs time in proportion to the ciphertext: a large one belongs into a thread.
        """
        return self.opener()(ciphertext)

    def opener(self) -> Callable[[bytes], bytes]:
        """`open` with the keys of this moment: for a thread, while the loop goes on to new ones."""
        self._forget()
        keys = (self._current, *self._retired) if self._current is not None else ()

        def opened(ciphertext: bytes) -> bytes:
            for key in keys:
                try:
                    return key.identity.open(ciphertext)
                except ValueError:
                    continue
            raise ValueError("not sealed to a key of this node that is still kept")

        return opened

    async def run(self) -> None:
        """Make new keys and forget old ones until cancelled."""
        while True:
            self.advert()
            self._forget()
            await asyncio.sleep(_LOOK_S)

    def _turn(self, now: int) -> _Key:
        identity = self._age.new_identity()
        key = _Key(identity, self._advertise(identity.recipient, now, now + LIFE_S))
        if self._current is not None:
            self._current.retired_at = self._clock.mono()
            self._retired = [self._current, *self._retired][:_KEPT]
        self._current = key
        return key

    def _forget(self) -> None:
        oldest = self._clock.mono() - KEEP_S
        if self._retired and self._retired[-1].retired_at <= oldest:
            self._retired = [key for key in self._retired if key.retired_at > oldest]

"""Clients of the network listener, told apart without their addresses."""

from __future__ import annotations

from hashlib import blake2b
from math import ceil
from typing import Final

from relaydesk.core.ports import Clock
from relaydesk.core.relay.bucket import Buckets, bucket_key

_FORGET_EACH_S: Final = 60.0


class Clients:
    """``key`` is secret, and new at each start: a keyed hash stands for an address, so that none stays behind
    where a request is over."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def name(self, address: str) -> str:
        """What stands for whoever is at ``address``; all of an IPv6 /64 have one."""
        return blake2b(bucket_key(address).encode(), key=self._key, digest_size=16).hexdigest()


def share(of_all: int) -> int:
    """What one client may have of a number of places, so that it cannot have them all: a quarter."""
    return max(1, of_all // 4)


class Held:
    """How much each client holds now. Of one that holds nothing, nothing is known."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def __getitem__(self, client: str) -> int:
        return self._counts.get(client, 0)

    def add(self, client: str) -> None:
        self._counts[client] = self[client] + 1

    def drop(self, client: str) -> None:
        left = self._counts.pop(client) - 1
        if left:
            self._counts[client] = left


class Rate:
    """How often each client may ask."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets = Buckets()
        self._forgot = clock.mono()

    def take(self, client: str, per_minute: int) -> int:
        """0 where ``client``, by its name, may ask now, else the whole seconds until it may."""
        now = self._clock.mono()
        if now - self._forgot > _FORGET_EACH_S:
            self._forgot = now
            self._buckets.forget_full(now)
        return ceil(self._buckets.take(client, per_minute, now))

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

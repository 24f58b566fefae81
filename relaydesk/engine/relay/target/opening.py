"""Opening what was sealed to this node: what is large, in a thread (wire §4.3, §4.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from relaydesk.core.relay.sealed.envelope import SealedError, read_envelope
from relaydesk.engine.relay.ephemerals import Ephemerals

T = TypeVar("T")

# The whole of it, base64 and cipher, is done on the loop up to here.
ON_LOOP_BYTES: Final = 64 * 1024
# Large ones at once: each holds its body several times over.
_AT_ONCE: Final = 2


class Opening:
    """Opens envelopes with the keys that are kept, of which an old one may be the one sealed to."""

    def __init__(self, keys: Ephemerals) -> None:
        self._keys = keys
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def open(self, body: bytes, limit: int) -> bytes:
        """The plaintext of an envelope of at most ``limit`` bytes. Raises `SealedError`."""
        key = self._keys.opener()

        def work() -> bytes:
            ciphertext = read_envelope(body, limit)
            try:
                return key(ciphertext)
            except ValueError:
                raise SealedError("the ciphertext was not sealed to a key of this node") from None

        return await self.off_loop(len(body), work)

    async def off_loop(self, size: int, work: Callable[[], T]) -> T:
        """The result of ``work`` on ``size`` bytes, done in a thread where that is much."""
        if size <= ON_LOOP_BYTES:
            return work()
        async with self._turns:
            return await asyncio.to_thread(work)

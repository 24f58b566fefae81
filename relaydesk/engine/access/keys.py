"""The keys that open this hub, and the check every request passes.

Only digests are held for comparing; the secret of the default key stays in the secrets store and is read
when an operator asks to see it.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Sequence

import msgspec

from relaydesk.core.access.caller import DEFAULT_CALLER, Caller
from relaydesk.core.access.compare import digest
from relaydesk.core.access.default_key import SECRET_NAME, DefaultKey, default_key, make_key
from relaydesk.core.access.key import DEFAULT_KEY
from relaydesk.core.errors import LocalError
from relaydesk.core.events import KeysChanged
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.view.sections import KeysView, KeyView
from relaydesk.engine.access.key_ring import KeyRing
from relaydesk.engine.bus import Bus
from relaydesk.store.secrets import Secrets


class Authenticator:
    """Knows the default key and, by its ``ring``, the named ones."""

    def __init__(
        self, key: DefaultKey, ring: KeyRing, secrets: Secrets, clock: Clock, rng: Rng, bus: Bus
    ) -> None:
        self.ring = ring
        self._secrets = secrets
        self._clock = clock
        self._rng = rng
        self._bus = bus
        # Whether the default key may use the relay network: a setting.
        self.default_network = False
        self._since_ms = clock.wall_ms()
        self._rotating = asyncio.Lock()
        self._take(key)

    @classmethod
    def open(
        cls, given: str, ring: KeyRing, secrets: Secrets, clock: Clock, rng: Rng, bus: Bus
    ) -> Authenticator:
        """Use the given key, the stored one, or make, store and keep a new one.

        Raises `EnvError` ``secret_failed`` where the store cannot be read or written.
        """
        stored = None if given else secrets.get(SECRET_NAME)
        key = default_key(given, stored, rng)
        if key.created:
            secrets.put(SECRET_NAME, key.secret)
        return cls(key, ring, secrets, clock, rng, bus)

    @property
    def given(self) -> bool:
        """Whether the default key comes from a setting: then its owner knows it."""
        return self._key.given

    def check(self, presented: Sequence[str], in_path: str = "") -> Caller | None:
        """Who asks, by the first key among those `presented` that opens; None where none does.

        ``in_path`` is the key that stood in the URL, looked at last: only keys made for it open there, and
        they open nowhere else. Each costs the same, whether it opens or not: its digest, one lookup with one
        comparison, and one comparison with the default key's. Without any, an empty one is looked at.
        """
        given = [(key, False) for key in presented]
        if in_path:
            given.append((in_path, True))
        found: Caller | None = None
        for key, of_path in given or [("", True)]:
            hashed = digest(key)
            spec = self.ring.find(hashed)
            default = hmac.compare_digest(hashed, self._digest)
            if found is None and default and not of_path:
                found = msgspec.structs.replace(DEFAULT_CALLER, network=self.default_network)
            elif found is None and spec is not None and spec.in_path is of_path:
                found = Caller(spec.name, spec.id, spec)
        return found

    def secret(self) -> str:
        """The default key itself, for an operator who asked for it."""
        return self._key.secret

    async def rotate(self) -> str:
        """Replace the default key and return the new one; the old one stops working at once.

        Raises `LocalError` ``refused`` where the key comes from a setting.
        """
        if self._key.given:
            raise LocalError(
                "refused",
                "the default key comes from RELAY_API_KEY",
                "change it there, then restart or reload the node",
            )
        # One after another: the key in force is always the one that was stored last.
        async with self._rotating:
            secret = make_key(self._rng)
            # Stored first: a key that was announced must survive the next start.
            await asyncio.to_thread(self._secrets.put, SECRET_NAME, secret)
            self._since_ms = self._clock.wall_ms()
            self._take(DefaultKey(secret, created=False, given=False))
        self._bus.publish(KeysChanged())
        return secret

    def view(self) -> KeysView:
        """The default key, then the named ones by name."""
        source = "RELAY_API_KEY" if self._key.given else self._secrets.place
        standing, credit = self.ring.standing(DEFAULT_KEY), self.ring.credit(DEFAULT_KEY)
        default = KeyView(
            DEFAULT_KEY,
            self._key.fingerprint,
            source,
            self._since_ms,
            used=standing.used,
            reserved=standing.reserved,
            running=standing.running,
            network=self.default_network,
            credit_per_day=credit.limit,
            credit_spent=credit.spent,
            credit_held=credit.held,
        )
        return KeysView((default, *self.ring.views()))

    def _take(self, key: DefaultKey) -> None:
        self._key = key
        self._digest = digest(key.secret)

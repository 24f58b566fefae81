"""Named keys in force: found by what a request presents, changed by the operator, kept in the store."""

from __future__ import annotations

import asyncio
import hmac
from typing import Any, Final

import msgspec

from relaydesk.core.access.compare import digest
from relaydesk.core.access.credit import CreditStanding
from relaydesk.core.access.key import KeySpec, key_id, make_secret, parse_key_name
from relaydesk.core.access.limits import FIELDS, check_limit
from relaydesk.core.access.quota import Standing
from relaydesk.core.errors import LocalError
from relaydesk.core.events import KeysChanged
from relaydesk.core.gateway.away import parse_allowed_model
from relaydesk.core.ports import Clock, Rng
from relaydesk.core.view.sections import KeyView
from relaydesk.engine.access.quotas import Quotas
from relaydesk.engine.bus import Bus
from relaydesk.store.keys import KeysRepo, StoredKey, unknown_key

MOST_MODELS: Final = 256
# Compared with where a presented key is unknown, so that both cases do the same work.
_NOBODY: Final = bytes(32)


class KeyRing:
    """Every named key. Changes count at once, for the next request; what runs is let run."""

    def __init__(self, repo: KeysRepo, quotas: Quotas, clock: Clock, rng: Rng, bus: Bus) -> None:
        self._repo = repo
        self._quotas = quotas
        self._clock = clock
        self._rng = rng
        self._bus = bus
        self._by_digest: dict[bytes, StoredKey] = {}
        self._by_name: dict[str, StoredKey] = {}
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Read the stored keys. Raises `EnvError` ``storage_failed``."""
        for key in await self._repo.list():
            self._take(key)

    def find(self, presented: bytes) -> KeySpec | None:
        """The key whose secret hashes to ``presented``, None where there is none or it has expired.

        The digest is looked up, then compared once in constant time, whether it was found or not.
        """
        found = self._by_digest.get(presented)
        same = hmac.compare_digest(presented, _NOBODY if found is None else found.digest)
        if found is None or not same or found.spec.expired(self._clock.wall_ms()):
            return None
        return found.spec

    def spec(self, name: str) -> KeySpec:
        """A key by name. Raises `LocalError` ``key_not_found``."""
        found = self._by_name.get(name)
        if found is None:
            raise unknown_key(name[:80])
        return found.spec

    def specs(self) -> tuple[KeySpec, ...]:
        """Every key, by name."""
        return tuple(self._by_name[name].spec for name in sorted(self._by_name))

    def standing(self, key_id: str) -> Standing:
        """How a key stands now."""
        return self._quotas.standing(key_id)

    def credit(self, key_id: str) -> CreditStanding:
        """How a key's credit at the relay network stands today."""
        return self._quotas.credits.standing(key_id)

    def views(self) -> tuple[KeyView, ...]:
        """Every key as fronts see it, with how it stands now."""
        return tuple(self._view(spec) for spec in self.specs())

    def _view(self, spec: KeySpec) -> KeyView:
        standing, credit = self._quotas.standing(spec.id), self._quotas.credits.standing(spec.id)
        return KeyView(
            name=spec.name,
            fingerprint=spec.id[:8],
            source="key add",
            created_at_ms=spec.created_ms,
            tokens_per_day=spec.limits.tokens_per_day,
            max_concurrency=spec.limits.max_concurrency,
            requests_per_minute=spec.limits.requests_per_minute,
            models=spec.models,
            expires_at_ms=spec.expires_ms,
            in_path=spec.in_path,
            used=standing.used,
            reserved=standing.reserved,
            running=standing.running,
            minute_used=standing.minute_used,
            network=spec.network,
            credit_per_day=spec.limits.credit_per_day,
            credit_spent=credit.spent,
            credit_held=credit.held,
        )

    async def add(self, name: str, settings: dict[str, Any]) -> tuple[KeySpec, str]:
        """Make a key; its secret is given here and never again.

        Raises `LocalError`: a name or setting that cannot be (``param`` names it), ``conflict``.
        """
        secret = make_secret(self._rng)
        fresh = KeySpec(name=parse_key_name(name), id=key_id(secret), created_ms=self._clock.wall_ms())
        spec = with_settings(fresh, settings, self._clock.wall_ms())
        async with self._turn:
            await self._repo.add(StoredKey(spec, digest(secret)))
            self._take(StoredKey(spec, digest(secret)))
        self._bus.publish(KeysChanged())
        return spec, secret

    async def change(self, name: str, settings: dict[str, Any]) -> tuple[KeySpec, KeySpec]:
        """Change a key's settings; gives it as it was and as it is. Raises `LocalError`."""
        async with self._turn:
            old = self.spec(name)
            new = with_settings(old, settings, self._clock.wall_ms())
            await self._repo.replace(new)
            self._take(StoredKey(new, self._by_name[name].digest))
        self._bus.publish(KeysChanged())
        return old, new

    async def remove(self, name: str) -> KeySpec:
        """Revoke a key at once. Raises `LocalError` ``key_not_found``, `EnvError` where the store fails.

        It opens nothing from here on, even then; only the next start would bring it back, so that it has to
        be removed once more.
        """
        async with self._turn:
            gone = self._by_name.get(name)
            if gone is None:
                raise unknown_key(name[:80])
            self._by_digest.pop(gone.digest, None)
            self._quotas.forget(gone.spec.id)
            await self._repo.remove(name)
            del self._by_name[name]
        self._bus.publish(KeysChanged())
        return gone.spec

    def _take(self, key: StoredKey) -> None:
        self._by_digest[key.digest] = key
        self._by_name[key.spec.name] = key
        self._quotas.limit(key.spec.id, key.spec.limits)


_SETTINGS: Final = (*FIELDS, "models", "expires_ms", "in_path", "network")


def with_settings(spec: KeySpec, settings: dict[str, Any], wall_ms: int) -> KeySpec:
    """``spec`` with ``settings`` in place: the limits by name, ``models``, ``expires_ms``, and two switches.

    Raises `LocalError` ``invalid_request`` whose ``param`` names what cannot be.
    """
    for name in settings:
        if name not in _SETTINGS:
            hint = f"choose out of {', '.join(_SETTINGS)}"
            raise _wrong(name[:80], f"a key has no setting {name[:80]!r}", hint)
    limits = {name: check_limit(name, settings[name]) for name in FIELDS if name in settings}
    changes: dict[str, Any] = {"limits": msgspec.structs.replace(spec.limits, **limits)}
    if "models" in settings:
        changes["models"] = _models(settings["models"])
    if "expires_ms" in settings:
        changes["expires_ms"] = _expiry(settings["expires_ms"], wall_ms)
    for switch in ("in_path", "network"):
        if switch in settings:
            if not isinstance(settings[switch], bool):
                raise _wrong(switch, f"{switch} must be true or false", "")
            changes[switch] = settings[switch]
    made = msgspec.structs.replace(spec, **changes)
    if made.in_path and not made.models:
        raise _wrong(
            "models", "a key that stands in a URL opens only the models that it lists", "name at least one"
        )
    return made


def _models(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise _wrong("models", "models must be a list of model names", "an empty list allows all")
    if len(value) > MOST_MODELS:
        raise _wrong("models", f"models has {len(value)} names", f"{MOST_MODELS} are allowed")
    try:
        return tuple(dict.fromkeys(parse_allowed_model(each) for each in value))
    except LocalError as error:
        raise _wrong("models", error.fault.message, "see `relaydesk model list`") from None


def _expiry(value: Any, wall_ms: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise _wrong("expires_ms", "expires_ms must be milliseconds since 1970", "0 means never")
    if 0 < value <= wall_ms:
        raise _wrong("expires_ms", "the key would have expired already", "choose a time to come")
    return value


def _wrong(param: str, message: str, hint: str) -> LocalError:
    return LocalError("invalid_request", message, hint, param=param)

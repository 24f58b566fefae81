"""What a key costs a request: found among many, granted, settled and written to the usage log."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

from relaydesk.core.access.compare import digest
from relaydesk.core.access.key import KeySpec, key_id, make_secret
from relaydesk.core.access.limits import KeyLimits
from relaydesk.core.access.quota import Ask
from relaydesk.engine.access.key_ring import KeyRing
from relaydesk.engine.access.keys import Authenticator
from relaydesk.engine.access.quotas import Quotas
from relaydesk.engine.bus import Bus
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.store.db import Database
from relaydesk.store.keys import KeysRepo, StoredKey
from relaydesk.store.secrets import FileSecrets
from relaydesk.store.usage import UsageRepo
from relaydesk.store.usage_log import UsageLog
from tests.bench.figure import Budget, Figure, value
from tests.bench.rig import Context, temporary

KEYS: Final = (1_000, 10_000)
_ROUNDS: Final = 2_000
# With 1,000 keys.
_BUDGET: Final = Budget(60.0)
_LIMITS: Final = KeyLimits(tokens_per_day=10**9, max_concurrency=8, requests_per_minute=10**6)
_ASK: Final = Ask(prompt=500, limit=200)


def access(context: Context) -> list[Figure]:
    """One key among `KEYS` of them, each with all three limits."""
    found = []
    for count in KEYS:
        with temporary() as directory:
            took = asyncio.run(_measured(Path(directory), count, context.pairs))
        name = f"key and quota of a request, {count:,} named keys"
        found.append(value("access", name, "µs", took, budget=_BUDGET))
    return found


async def _measured(directory: Path, count: int, rounds: int) -> list[float]:
    clock, rng, bus = SystemClock(), SystemRng(), Bus()
    database = Database(directory / "hub.db")
    await database.open()
    log = UsageLog(directory / "usage.log")
    quotas = Quotas(UsageRepo(database), log, clock, "bench", lambda _: None)
    ring = KeyRing(KeysRepo(database), quotas, clock, rng, bus)
    authenticator = Authenticator.open("", ring, FileSecrets(directory), clock, rng, bus)
    await quotas.open()
    secrets = [make_secret(rng) for _ in range(count)]
    for number, secret in enumerate(secrets):
        spec = KeySpec(name=f"k{number}", id=key_id(secret), created_ms=1, limits=_LIMITS)
        ring._take(StoredKey(spec, digest(secret)))
    took = [await _round(authenticator, quotas, secrets[count // 2]) for _ in range(rounds + 1)]
    await quotas.close()
    await database.close()
    return took[1:]


async def _round(authenticator: Authenticator, quotas: Quotas, secret: str) -> float:
    began = time.perf_counter()
    for _ in range(_ROUNDS):
        caller = authenticator.check((secret,))
        assert caller is not None
        grant = await quotas.admit(caller.id, _ASK)
        quotas.settle(caller.id, grant, 20, 15)
    return (time.perf_counter() - began) / _ROUNDS * 1e6

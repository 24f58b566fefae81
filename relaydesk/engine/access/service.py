"""Everything about who may ask what: keys, their quotas, and the audit, opened and closed together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from relaydesk.config.paths import Paths
from relaydesk.core.events import KeysUsed
from relaydesk.core.ports import Clock, Rng
from relaydesk.engine.access.audit import Audit
from relaydesk.engine.access.boot import boot_name
from relaydesk.engine.access.key_commands import KeyCommands
from relaydesk.engine.access.key_ring import KeyRing
from relaydesk.engine.access.keys import Authenticator
from relaydesk.engine.access.quotas import Quotas
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.bus import Bus
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.store.audit import AuditLog
from relaydesk.store.db import Database, call_soon
from relaydesk.store.keys import KeysRepo
from relaydesk.store.secrets import Secrets
from relaydesk.store.usage import UsageRepo
from relaydesk.store.usage_log import UsageLog


class AccessService:
    """Make it inside the loop; `open` before use, `close` after the last request has ended.

    ``audit_days`` says how long the audit is kept, ``placement_of`` where a model runs, ``model_named``
    which registered one a name or alias means.
    """

    def __init__(
        self,
        paths: Paths,
        database: Database,
        clock: Clock,
        rng: Rng,
        bus: Bus,
        alerts: AlertBoard,
        *,
        audit_days: Callable[[], int],
        placement_of: Callable[[str], str],
        model_named: Callable[[str], str | None],
    ) -> None:
        self._model_named = model_named
        self._clock = clock
        self._rng = rng
        self._bus = bus
        self._alerts = alerts
        self._log = AuditLog(paths.audit, audit_days, self._from_thread(self._audit_alert), clock.mono)
        self.audit = Audit(self._log, clock, placement_of)
        usage_log = UsageLog(paths.usage_log)
        self.quotas = Quotas(
            UsageRepo(database), usage_log, clock, boot_name(), self._usage_alert, self._used
        )
        self.ring = KeyRing(KeysRepo(database), self.quotas, clock, rng, bus)
        self.authenticator: Authenticator

    async def open(self, given: str, secrets: Secrets) -> None:
        """Read keys and usage; ``given`` is the default key of a setting, empty for none.

        Raises `EnvError`: ``secret_failed``, ``storage_failed``.
        """
        self.authenticator = await asyncio.to_thread(
            Authenticator.open, given, self.ring, secrets, self._clock, self._rng, self._bus
        )
        await asyncio.to_thread(self._log.open)
        await self.quotas.open()
        await self.ring.open()

    def register(self, dispatcher: Dispatcher) -> None:
        """Offer the commands about keys and the audit."""
        KeyCommands(self.ring, self.quotas, self.audit, self._clock, self._model_named).register(dispatcher)

    async def close(self) -> None:
        """Write down what is not written yet. The database must still be open."""
        await self.quotas.close()
        await asyncio.to_thread(self._log.close)

    def _from_thread(self, call: Callable[[str], None]) -> Callable[[str], None]:
        """``call`` for another thread to use: it runs on the loop."""
        loop = asyncio.get_running_loop()
        return lambda text: call_soon(loop, lambda: call(text))

    def _audit_alert(self, sentence: str) -> None:
        self._alert("audit_not_kept", sentence, "what happens until then is missing in the audit")

    def _used(self) -> None:
        self._bus.publish(KeysUsed())

    def _usage_alert(self, sentence: str) -> None:
        self._alert("usage_not_kept", sentence, "a restart before then forgets what keys have used")

    def _alert(self, code: str, sentence: str, hint: str) -> None:
        if sentence:
            self._alerts.raise_alert(code, sentence, hint, severity="error")
        else:
            self._alerts.clear(code)

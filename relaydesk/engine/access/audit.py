"""From requests that have ended, and refusals, to the audit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from relaydesk.core.access.audit import AuditFilter, AuditRecord
from relaydesk.core.access.caller import Caller
from relaydesk.core.errors import Fault
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.core.ports import Clock
from relaydesk.core.view.sections import RequestView
from relaydesk.engine.access.repeats import Repeats
from relaydesk.store.audit import AuditLog

HOST = "host"
MOST = 1000


class Audit:
    """Writes one record a request. ``placement_of`` says where a model runs: ``host``, ``server``, …"""

    def __init__(self, log: AuditLog, clock: Clock, placement_of: Callable[[str], str]) -> None:
        self._log = log
        self._clock = clock
        self._placement_of = placement_of
        self._repeats = Repeats(clock)

    def ended(self, view: RequestView, caller: Caller, client: str) -> None:
        """A request is over."""
        code = view.fault.code if view.fault is not None else ""
        if self._repeats.again(caller.id, code):
            return
        if view.placement:
            # It is sealed to its target: nobody else saw it, and nobody at all where none was reached.
            placement, machines = view.placement if view.targets else "", view.targets
        else:
            ran = view.prompt_tokens or view.first_token_ms
            placement = self._placement_of(view.model) if ran else ""
            machines = (placement,) if placement else ()
        self._log.put(
            AuditRecord(
                at_ms=view.started_at_ms,
                id=view.id,
                key=caller.name,
                key_id=caller.id,
                client=client,
                route=view.route,
                model=view.model,
                placement=placement,
                machines=machines,
                relays=view.relays,
                targets=view.targets,
                paid=view.paid,
                stream=view.stream,
                choices=view.choices,
                outcome=view.state,
                status=view.status,
                code=code,
                untold=self._repeats.untold(caller.id, code),
                prompt_tokens=view.prompt_tokens,
                cached_tokens=view.cached_tokens,
                completion_tokens=view.completion_tokens,
                queue_ms=view.queue_ms,
                load_ms=view.load_ms,
                first_token_ms=view.first_token_ms,
                total_ms=view.total_ms or 0,
            )
        )

    def refused(self, incoming: Incoming, fault: Fault) -> None:
        """A request was refused before anything of it became work."""
        if self._repeats.again(incoming.caller.id, fault.code):
            return
        self._log.put(
            AuditRecord(
                at_ms=self._clock.wall_ms(),
                id=incoming.request_id,
                key=incoming.caller.name,
                key_id=incoming.caller.id,
                client=incoming.client,
                route=incoming.route,
                outcome="refused",
                status=fault.rule.status,
                code=fault.code,
            )
        )

    async def newest(self, wanted: AuditFilter, limit: int) -> list[AuditRecord]:
        """The newest matching records, newest first, at most `MOST`."""
        return await asyncio.to_thread(self._log.newest, wanted, max(1, min(limit, MOST)))

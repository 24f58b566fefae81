"""The commands about named keys, carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaydesk.core.access.key import DEFAULT_KEY, KeySpec
from relaydesk.core.access.quota import day_of
from relaydesk.core.codec import to_builtins
from relaydesk.core.commands import AddKey, Outcome, RemoveKey, SetKey, ShowAudit, ShowUsage
from relaydesk.core.errors import LocalError
from relaydesk.core.gateway.away import PREFIX
from relaydesk.core.ports import Clock
from relaydesk.core.text import safe_text
from relaydesk.engine.access.audit import Audit
from relaydesk.engine.access.key_ring import KeyRing
from relaydesk.engine.access.quotas import Quotas
from relaydesk.engine.dispatch import Dispatcher

# Far beyond any calendar, and small enough for the database.
_LAST_DAY = 10_000_000


class KeyCommands:
    """Handlers for every command that is about a named key or what keys did."""

    def __init__(
        self,
        ring: KeyRing,
        quotas: Quotas,
        audit: Audit,
        clock: Clock,
        model_named: Callable[[str], str | None],
    ) -> None:
        self._model_named = model_named
        self._ring = ring
        self._audit = audit
        self._quotas = quotas
        self._clock = clock

    def register(self, dispatcher: Dispatcher) -> None:
        """Offer all handlers."""
        dispatcher.on(AddKey, self.add)
        dispatcher.on(SetKey, self.set)
        dispatcher.on(RemoveKey, self.remove)
        dispatcher.on(ShowUsage, self.usage)
        dispatcher.on(ShowAudit, self.audit)

    async def add(self, command: AddKey) -> Outcome:
        spec, secret = await self._ring.add(command.name, self._resolved(command.settings))
        return Outcome(ok=True, value={"name": spec.name, "key": secret, **_shown(spec)})

    async def set(self, command: SetKey) -> Outcome:
        old, new = await self._ring.change(command.name, self._resolved(command.settings))
        return Outcome(ok=True, value={"name": new.name, "old": _shown(old), **_shown(new)})

    async def remove(self, command: RemoveKey) -> Outcome:
        spec = await self._ring.remove(command.name)
        running = self._quotas.standing(spec.id).running
        return Outcome(ok=True, value={"name": spec.name, "running": running})

    def _resolved(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings with models by their registered names; one that leads nowhere would open nothing.

        Raises `LocalError` ``invalid_request`` for a model that there is none of.
        """
        given = settings.get("models")
        if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
            return settings
        # What the network offers comes and goes: its names are taken as they are.
        found = [each if each.startswith(PREFIX) else self._model_named(each) for each in given]
        for name, each in zip(given, found, strict=True):
            if each is None:
                raise LocalError(
                    "invalid_request",
                    f"there is no model {safe_text(name, 128)}",
                    "see `relaydesk model list`",
                    param="models",
                )
        return {**settings, "models": found}

    async def usage(self, command: ShowUsage) -> Outcome:
        key = DEFAULT_KEY if command.name == DEFAULT_KEY else self._ring.spec(command.name).id
        standing = self._quotas.standing(key)
        days = [
            {
                "day": row.day,
                "requests": row.requests,
                "prompt_tokens": row.prompt,
                "completion_tokens": row.completion,
                "tokens": row.tokens,
                "credit": row.credit,
            }
            for row in await self._quotas.history(key, min(max(0, command.since_day), _LAST_DAY))
        ]
        credit = self._quotas.credits.standing(key)
        now = {
            "today": day_of(self._clock.wall_ms()),
            **to_builtins(standing),
            "credit": {**to_builtins(credit), "left": credit.left},
        }
        return Outcome(ok=True, value={"name": command.name, "days": days, "now": now})

    async def audit(self, command: ShowAudit) -> Outcome:
        records = await self._audit.newest(command.wanted, command.limit)
        return Outcome(ok=True, value={"records": [to_builtins(each) for each in records]})


def _shown(spec: KeySpec) -> dict[str, Any]:
    """A key's settings as JSON; never anything of its secret."""
    return {
        **to_builtins(spec.limits),
        "models": list(spec.models),
        "expires_ms": spec.expires_ms,
        "in_path": spec.in_path,
        "network": spec.network,
    }

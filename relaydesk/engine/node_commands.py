"""The commands about the node itself, carried out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from relaydesk.config.load import Loaded, load
from relaydesk.config.reload import diff, merge
from relaydesk.config.show import shown
from relaydesk.core.codec import to_builtins
from relaydesk.core.commands import (
    CancelJob,
    Outcome,
    Reload,
    RenewCa,
    RotateDefaultKey,
    ShowConfig,
    ShowDefaultKey,
    ShowRequest,
    Stop,
)
from relaydesk.core.errors import LocalError
from relaydesk.engine.dispatch import Dispatcher
from relaydesk.engine.jobs import JobBoard

if TYPE_CHECKING:
    from relaydesk.engine.node import Node


class NodeCommands:
    """Handlers for every command that is about the node."""

    def __init__(self, node: Node, jobs: JobBoard, environ: Mapping[str, str]) -> None:
        self._node = node
        self._jobs = jobs
        self._environ = environ

    def register(self, dispatcher: Dispatcher) -> None:
        """Offer all handlers."""
        dispatcher.on(ShowDefaultKey, self.show_key)
        dispatcher.on(RotateDefaultKey, self.rotate_key)
        dispatcher.on(ShowRequest, self.show_request)
        dispatcher.on(ShowConfig, self.show_config)
        dispatcher.on(CancelJob, self.cancel_job)
        dispatcher.on(RenewCa, self.renew_ca)
        dispatcher.on(Reload, self.reload)
        dispatcher.on(Stop, self.stop)

    async def show_key(self, _command: ShowDefaultKey) -> Outcome:
        return Outcome(ok=True, value={"key": self._node.authenticator.secret()})

    async def rotate_key(self, _command: RotateDefaultKey) -> Outcome:
        return Outcome(ok=True, value={"key": await self._node.authenticator.rotate()})

    async def show_request(self, command: ShowRequest) -> Outcome:
        view = self._node.journal.find(command.id)
        if view is None:
            raise LocalError(
                "request_not_found",
                f"no request {command.id[:80]} is kept",
                "the id is in each answer's x-request-id; the newest 500 are kept until the node stops",
            )
        return Outcome(ok=True, value=to_builtins(view))

    async def show_config(self, _command: ShowConfig) -> Outcome:
        rows = [
            {"name": each.name, "value": each.value, "origin": each.origin, "help": each.help}
            for each in shown(self._node.loaded)
        ]
        return Outcome(ok=True, value=rows)

    async def cancel_job(self, command: CancelJob) -> Outcome:
        await self._jobs.cancel(command.id)
        return Outcome(ok=True)

    async def renew_ca(self, _command: RenewCa) -> Outcome:
        tls = self._node.tls
        if tls is None:
            raise LocalError(
                "conflict", "this hub serves plain HTTP and has no CA", "set RELAY_V1_TLS=on first"
            )
        fingerprint = await tls.renew_ca()
        self._node.relisten()
        return Outcome(ok=True, value={"fingerprint": fingerprint, "ca_path": str(tls.ca_path)})

    async def reload(self, _command: Reload) -> Outcome:
        old = self._node.loaded
        # A flag of `serve` stays in force: it was given for this process.
        flags = {key: origin for key, origin in old.origins.items() if origin.startswith("flag ")}
        fresh = load(env=self._environ, config=old.config_file)
        changes = diff(old.settings, fresh.settings)
        applied = tuple(key for key in changes.applied if key not in flags)
        waiting = tuple(key for key in changes.needs_restart if key not in flags)
        settings = merge(old.settings, fresh.settings)
        settings = dataclasses.replace(settings, **{key: getattr(old.settings, key) for key in flags})
        # What waits for a restart keeps its old value, and so where that came from.
        kept = {key: old.origins[key] for key in waiting if key in old.origins}
        origins = {**fresh.origins, **kept, **flags}
        self._node.apply(Loaded(settings, origins, fresh.warnings, old.config_file))
        return Outcome(ok=True, value={"applied": list(applied), "needs_restart": list(waiting)})

    async def stop(self, _command: Stop) -> Outcome:
        self._node.stop_requested.set()
        return Outcome(ok=True)

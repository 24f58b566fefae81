"""From a command to the handler that carries it out."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from relaydesk.core.codec import fault_view
from relaydesk.core.commands import Command, Outcome, name_of
from relaydesk.core.errors import Fault, FaultError

_log: Final = logging.getLogger(__name__)

C = TypeVar("C", bound=Command)


class Dispatcher:
    """The node's table of handlers. A command without one answers ``not_built``."""

    def __init__(self) -> None:
        self._handlers: dict[type[Command], Callable[[Any], Awaitable[Outcome]]] = {}

    def on(self, kind: type[C], handler: Callable[[C], Awaitable[Outcome]]) -> None:
        """Let ``handler`` carry out commands of ``kind``; each kind has one handler."""
        if kind in self._handlers:
            raise ValueError(f"{name_of(kind)} has a handler already")
        self._handlers[kind] = handler

    def handles(self, kind: type[Command]) -> bool:
        """Whether this node can do it: help and palette leave out what it cannot."""
        return kind in self._handlers

    async def call(self, command: Command) -> Outcome:
        """Carry out a command. Whatever goes wrong is in the outcome."""
        handler = self._handlers.get(type(command))
        if handler is None:
            fault = Fault("not_built", f"this version of relaydesk cannot do {name_of(command)} yet")
            return Outcome(ok=False, fault=fault_view(fault))
        try:
            return await handler(command)
        except FaultError as error:
            return Outcome(ok=False, fault=fault_view(error.fault))
        except Exception:
            _log.exception("%s failed", name_of(command))
            fault = Fault("internal_error", f"{name_of(command)} failed inside relaydesk", "see the log")
            return Outcome(ok=False, fault=fault_view(fault))

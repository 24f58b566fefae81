"""Who owns the node's tasks: one TaskGroup, services with a restart rule, one way to stop.

A service that fails is started again with growing pauses and an alert; one marked ``vital`` ends the node,
since a node without it would only pretend to work.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from relaydesk.core.errors import FaultError
from relaydesk.core.ports import Clock
from relaydesk.engine.alerts import AlertBoard

_log: Final = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
# A service that ran this long before it failed starts again without a grown pause.
HEALTHY_AFTER_S: Final = 60.0


class Service(Protocol):
    """Something that runs until it is cancelled."""

    @property
    def name(self) -> str:
        """How logs and alerts call it."""
        ...

    async def run(self) -> None:
        """Run until cancelled. Returning means the work is done for good."""
        ...


@dataclass(frozen=True, slots=True)
class _Entry:
    service: Service
    vital: bool


class Supervisor:
    """Runs services until `stop` or until a vital one fails."""

    def __init__(self, clock: Clock, alerts: AlertBoard) -> None:
        self._clock = clock
        self._alerts = alerts
        self._entries: list[_Entry] = []
        self._group: asyncio.TaskGroup | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()

    def add(self, service: Service, *, vital: bool = False) -> None:
        """Run ``service`` from now on (or from `run` on, where that has not begun)."""
        entry = _Entry(service, vital)
        self._entries.append(entry)
        if self._group is not None and not self._stop.is_set():
            self._start(entry)

    async def run(self) -> None:
        """Run everything until `stop`. Raises what ended a vital service."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for entry in self._entries:
                    self._start(entry)
                await self._stop.wait()
                for task in self._tasks:
                    task.cancel()
        except BaseExceptionGroup as failures:
            fault = _first_fault(failures)
            raise fault if fault is not None else failures.exceptions[0] from None
        finally:
            self._group = None

    def stop(self) -> None:
        """Cancel every service; `run` returns once all of them have ended."""
        self._stop.set()

    def _start(self, entry: _Entry) -> None:
        assert self._group is not None
        task = self._group.create_task(self._keep(entry), name=entry.service.name)
        self._tasks.append(task)
        task.add_done_callback(self._tasks.remove)

    async def _keep(self, entry: _Entry) -> None:
        name = entry.service.name
        pause = FIRST_PAUSE_S
        while True:
            started = self._clock.mono()
            error = await self._end_of(entry.service)
            if error is None:
                self._alerts.clear("service_failed", subject=name)
                return
            if entry.vital:
                raise error
            reason = error.fault.sentence if isinstance(error, FaultError) else repr(error)
            _log.error(
                "%s failed: %s", name, reason, exc_info=None if isinstance(error, FaultError) else error
            )
            if self._clock.mono() - started >= HEALTHY_AFTER_S:
                pause = FIRST_PAUSE_S
            self._alerts.raise_alert(
                "service_failed",
                f"{name} failed: {reason}",
                f"it is started again in {pause:.0f} s; see the log if this stays",
                subject=name,
            )
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    async def _end_of(self, service: Service) -> Exception | None:
        """Run a service; None where it ended by itself, else what ended it."""
        # An alert about the last failure must not outlive the recovery from it.
        recovered = asyncio.get_running_loop().call_later(
            HEALTHY_AFTER_S, partial(self._alerts.clear, "service_failed", subject=service.name)
        )
        try:
            await service.run()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled the service: what it awaited was. A TaskGroup would let it die unseen.
            return RuntimeError("something it waited for was cancelled")
        except Exception as error:
            return error
        finally:
            recovered.cancel()
        return None


def _first_fault(failures: BaseExceptionGroup[BaseException]) -> FaultError | None:
    for error in failures.exceptions:
        if isinstance(error, BaseExceptionGroup):
            found = _first_fault(error)
            if found is not None:
                return found
        elif isinstance(error, FaultError):
            return error
    return None

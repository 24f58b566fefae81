"""All checks in the order in which people should look at them."""

from __future__ import annotations

from collections.abc import Iterator

from relaydesk.config.load import Loaded
from relaydesk.config.paths import Paths, resolve
from relaydesk.core.errors import FaultError
from relaydesk.core.ports import Clock
from relaydesk.engine.doctor import machine
from relaydesk.engine.doctor.engine_check import check_engine
from relaydesk.engine.doctor.finding import Finding


def examine(loaded: Loaded | FaultError, clock: Clock, *, node_runs: bool) -> Iterator[Finding]:
    """Run every check and yield its finding at once: the engine's takes a second or more.

    ``loaded`` is a `FaultError` where the settings cannot be read; what hangs on them is then left out.
    """
    yield machine.check_python()
    yield from settings_findings(loaded)
    yield machine.check_clock(clock)
    yield machine.check_memory()
    if not isinstance(loaded, FaultError):
        try:
            paths: Paths = resolve(loaded.settings)
        except FaultError as error:
            yield Finding("paths", "fail", error.fault.message, error.fault.hint)
        else:
            yield machine.check_state(paths.state)
            yield machine.check_disk(paths.models)
            yield machine.check_socket(paths, node_runs)
        yield machine.check_port(loaded.settings.listen, node_runs)
    yield from check_engine()


def settings_findings(loaded: Loaded | FaultError) -> Iterator[Finding]:
    """The settings and what is odd about them."""
    if isinstance(loaded, FaultError):
        yield Finding("settings", "fail", loaded.fault.message, loaded.fault.hint)
        return
    where = str(loaded.config_file) if loaded.config_file else "no settings file, which is fine"
    yield Finding("settings", "ok", where)
    for warning in loaded.warnings:
        yield Finding("settings", "warn", warning, "correct or unset it")

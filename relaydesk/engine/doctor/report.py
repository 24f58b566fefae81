"""All checks in the order in which people should look at them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from relaydesk.config.load import Loaded
from relaydesk.config.paths import Paths, resolve
from relaydesk.core.errors import FaultError
from relaydesk.core.ports import Clock
from relaydesk.engine.doctor import machine
from relaydesk.engine.doctor.engine_check import check_engine
from relaydesk.engine.doctor.finding import Finding
from relaydesk.engine.doctor.running import RunningNode, check_answer, check_models, check_network
from relaydesk.engine.relay.entrance import doubts


def examine(loaded: Loaded | FaultError, clock: Clock, node: RunningNode | None) -> Iterator[Finding]:
    """Run every check and yield its finding at once: the engine's takes a second or more.

    Where a ``node`` runs and answers, what hangs on settings is checked with those it runs with. ``loaded``
    is a `FaultError` where the settings of this shell cannot be read; without a node that answers, what
    hangs on them is then left out.
    """
    yield machine.check_python()
    yield from settings_findings(loaded, node)
    yield machine.check_clock(clock)
    yield machine.check_memory()
    if node is not None:
        yield check_answer(node)
        if node.meta is not None:
            yield check_models(node)
        if node.network is not None and node.network.on:
            yield check_network(node.network)
    if node is not None and node.settings is not None and node.meta is not None:
        settings = node.settings
        state = Path(node.meta.state_dir) if node.meta.state_dir else None
        if state is not None:
            yield machine.check_state(state)
            yield machine.check_disk(settings.model_dir or state / "models")
        yield machine.check_port(settings.listen, node_runs=True)
    elif not isinstance(loaded, FaultError):
        yield from _places(loaded, node)
    yield from check_engine()


def _places(loaded: Loaded, node: RunningNode | None) -> Iterator[Finding]:
    """The places a start would use."""
    try:
        paths: Paths = resolve(loaded.settings)
    except FaultError as error:
        yield Finding("paths", "fail", error.fault.message, error.fault.hint)
    else:
        yield machine.check_state(paths.state)
        yield machine.check_disk(paths.models)
        if node is None:
            yield machine.check_socket(paths)
    yield machine.check_port(loaded.settings.listen, node_runs=node is not None)


def settings_findings(loaded: Loaded | FaultError, node: RunningNode | None) -> Iterator[Finding]:
    """The settings and what is odd about them."""
    if node is not None and node.settings is not None:
        yield Finding("settings", "ok", "as the running node has them: see `relaydesk config show`")
        return
    if isinstance(loaded, FaultError):
        yield Finding("settings", "fail", loaded.fault.message, loaded.fault.hint)
        return
    where = str(loaded.config_file) if loaded.config_file else "no settings file, which is fine"
    yield Finding("settings", "ok", where)
    for warning in loaded.warnings:
        yield Finding("settings", "warn", warning, "correct or unset it")
    for doubt in doubts(loaded.settings):
        yield Finding("relay network", "warn", doubt, "")

"""``relaydesk doctor``."""

from __future__ import annotations

from typing import Final

import click

from relaydesk.config.load import Loaded
from relaydesk.core.errors import FaultError
from relaydesk.surfaces.cli.attach import find_node, json_option
from relaydesk.surfaces.cli.output import Tone, mark, paint, print_json, say
from relaydesk.surfaces.cli.settings import load_settings

_TONE: Final[dict[str, Tone]] = {"ok": "good", "warn": "warn", "fail": "bad"}


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Check this machine and say what to do; exit 1 where something will not work."""
    from relaydesk.engine.clock import SystemClock
    from relaydesk.engine.doctor.report import examine

    loaded = _settings()
    found = []
    for finding in examine(loaded, SystemClock(), node_runs=_node_runs(loaded)):
        found.append(finding)
        if as_json:
            continue
        tone = _TONE[finding.level]
        say(
            f"{mark(tone)} {paint(finding.level.ljust(4), tone)}  {finding.name.ljust(15)}  {finding.message}"
        )
        if finding.hint:
            say(f"{' ' * 9}next: {finding.hint}")
    failed = any(finding.level == "fail" for finding in found)
    if as_json:
        print_json({"ok": not failed, "findings": found})
    if failed:
        raise click.exceptions.Exit(1)


def _settings() -> Loaded | FaultError:
    try:
        return load_settings()
    except FaultError as error:
        return error


def _node_runs(loaded: Loaded | FaultError) -> bool:
    if isinstance(loaded, FaultError):
        return False
    try:
        find_node()
    except FaultError as error:
        # One that is another user's runs all the same.
        return error.fault.code == "refused"
    return True

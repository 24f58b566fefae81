"""``relaydesk doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from relaydesk.config.load import Loaded
from relaydesk.config.show import settings_of
from relaydesk.core.commands import ShowConfig
from relaydesk.core.errors import FaultError
from relaydesk.core.view.network import NetworkView
from relaydesk.core.view.sections import MetaView, ModelsView, Section
from relaydesk.surfaces.cli.attach import answer, find_node, json_option, read
from relaydesk.surfaces.cli.config import SettingRows
from relaydesk.surfaces.cli.output import Tone, mark, paint, print_json, say, wrap
from relaydesk.surfaces.cli.settings import load_settings
from relaydesk.surfaces.control.routes import VIEWS

if TYPE_CHECKING:
    from relaydesk.engine.doctor.finding import Finding
    from relaydesk.engine.doctor.running import RunningNode

_TONE: Final[dict[str, Tone]] = {"ok": "good", "warn": "warn", "fail": "bad"}


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Check this machine and say what to do; exit 1 where something will not work."""
    from relaydesk.engine.clock import SystemClock
    from relaydesk.engine.doctor.report import examine

    found = []
    for finding in examine(_settings(), SystemClock(), _running()):
        found.append(finding)
        if not as_json:
            for line in _lines(finding):
                say(line)
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


def _lines(finding: Finding) -> list[str]:
    tone = _TONE[finding.level]
    head = f"{mark(tone)} {paint(finding.level.ljust(4), tone)}  {finding.name.ljust(15)}  "
    own = str(Path.home())
    message = finding.message if own == "/" else finding.message.replace(own + "/", "~/")
    lines = wrap(message, " " * 25, head)
    return lines + wrap(finding.hint, " " * 15, " " * 9 + "next: ") if finding.hint else lines


def _running() -> RunningNode | None:
    """The running node, asked what it is; None where there is none."""
    from relaydesk.engine.doctor.running import RunningNode

    try:
        node = find_node()
    except FaultError as error:
        nobody = error.fault.code == "no_node" and error.fault.message.startswith("no node is running")
        # One that is another user's, or does not accept, runs all the same.
        return None if nobody or error.fault.code == "bad_setting" else RunningNode(fault=error.fault)
    try:
        meta = read(node.get(f"{VIEWS}/meta"), Section[MetaView]).value
        models = read(node.get(f"{VIEWS}/models"), Section[ModelsView]).value
        network = read(node.get(f"{VIEWS}/network"), Section[NetworkView]).value
        rows = answer({"settings": node.call(ShowConfig()).value}, SettingRows).settings
    except FaultError as error:
        return RunningNode(node.socket, fault=error.fault)
    settings = settings_of({str(row.name): str(row.value) for row in rows})
    rows_of = models.models if models is not None else ()
    return RunningNode(node.socket, meta, settings, rows_of, network)

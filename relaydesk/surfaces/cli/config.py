"""``relaydesk config``: the settings, and whether a node would start with them."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from relaydesk.config.load import DEFAULT_ORIGIN
from relaydesk.config.show import shown
from relaydesk.core.commands import ShowConfig
from relaydesk.core.errors import FaultError
from relaydesk.core.text import SafeText
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node, json_option
from relaydesk.surfaces.cli.lazy import LazyGroup
from relaydesk.surfaces.cli.output import note, paint, print_json, say, table
from relaydesk.surfaces.cli.settings import load_settings
from relaydesk.surfaces.cli.verbs import verb


class SettingRow(msgspec.Struct, frozen=True):
    """One setting. A secret's value says only whether it is set."""

    name: SafeText
    value: SafeText
    origin: SafeText
    help: SafeText = SafeText("")


class SettingRows(msgspec.Struct, frozen=True):
    """All of them."""

    settings: tuple[SettingRow, ...]


@click.group(cls=LazyGroup, verbs=verb("config").below)
def config() -> None:
    """The settings in force, and whether they are valid."""


@click.command("show")
@click.option("--origin", is_flag=True, help="Say where each value came from.")
@json_option
@attach_option
def show(origin: bool, as_json: bool, attach: Path | None) -> None:
    """The settings of the running node, or those that a start would use where none runs."""
    rows = _settings(attach)
    if as_json:
        print_json(SettingRows(rows))
        return
    width = max(len(row.name) for row in rows)
    if origin:
        for line in table(("SETTING", "VALUE", "FROM"), [_cells(row) for row in rows], indent=""):
            say(line)
        return
    for row in rows:
        say(paint(f"{row.name.ljust(width)}  {row.value}".rstrip(), "dim" if _is_default(row) else "plain"))


@click.command()
def check() -> None:
    """Read the settings as a start would, without a node; exit 2 where one cannot be used."""
    loaded = load_settings()
    for warning in loaded.warnings:
        note(f"warning: {warning}")
    given = sum(origin != DEFAULT_ORIGIN for origin in loaded.origins.values())
    where = str(loaded.config_file) if loaded.config_file else "no settings file"
    say(f"the settings are valid: {given} given, the rest are defaults ({where})")


def _settings(attach: Path | None) -> tuple[SettingRow, ...]:
    try:
        node = find_node(attach)
    except FaultError as error:
        if error.fault.code != "no_node" or attach is not None:
            raise
        note("no node is running: these are the settings that a start would use")
        return tuple(
            SettingRow(SafeText(row.name), SafeText(row.value), SafeText(row.origin), SafeText(row.help))
            for row in shown(load_settings())
        )
    value = node.call(ShowConfig()).value
    return answer({"settings": value} if isinstance(value, list) else value, SettingRows).settings


def _cells(row: SettingRow) -> tuple[str, ...]:
    return tuple(
        paint(text, "dim") if _is_default(row) else text for text in (row.name, row.value, row.origin)
    )


def _is_default(row: SettingRow) -> bool:
    return row.origin == DEFAULT_ORIGIN

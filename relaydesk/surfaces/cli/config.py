"""``relaydesk config``: the settings, and whether a node would start with them."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from relaydesk.config.load import DEFAULT_ORIGIN
from relaydesk.config.paths import resolve
from relaydesk.config.show import shown
from relaydesk.core.commands import ShowConfig
from relaydesk.core.errors import FaultError
from relaydesk.core.text import SafeText, safe_text
from relaydesk.core.view.sections import MetaView, Section
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node, json_option, read
from relaydesk.surfaces.cli.lazy import LazyGroup
from relaydesk.surfaces.cli.output import home, note, paint, print_json, say, table
from relaydesk.surfaces.cli.settings import load_settings
from relaydesk.surfaces.cli.verbs import verb
from relaydesk.surfaces.control.routes import VIEWS


class SettingRow(msgspec.Struct, frozen=True):
    """One setting. A secret's value says only whether it is set.

    ``in_force`` is the path that an empty value comes to.
    """

    name: SafeText
    value: SafeText
    origin: SafeText
    help: SafeText = SafeText("")
    in_force: str = ""

    @property
    def shown(self) -> str:
        """The value; in brackets what counts where none was given."""
        return self.value or (f"({home(safe_text(self.in_force, 400))})" if self.in_force else "")

    @property
    def source(self) -> str:
        """Where it came from; a variable of the setting's own name need not be named again."""
        return str(self.origin).removesuffix(f" {self.name}")


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
        for line in table(
            ("SETTING", "VALUE", "FROM"), [_cells(row) for row in rows], indent="", shrink=(1, 2)
        ):
            say(line)
        return
    for row in rows:
        say(paint(f"{row.name.ljust(width)}  {row.shown}".rstrip(), "dim" if _is_default(row) else "plain"))


@click.command()
def check() -> None:
    """Read the settings as a start would, without a node; exit 2 where one cannot be used."""
    from relaydesk.engine.relay.entrance import doubts

    loaded = load_settings()
    for warning in loaded.warnings:
        note(f"warning: {warning}")
    for doubt in doubts(loaded.settings):
        note(f"warning: {doubt}")
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
        loaded = load_settings()
        rows = tuple(
            SettingRow(SafeText(row.name), SafeText(row.value), SafeText(row.origin), SafeText(row.help))
            for row in shown(loaded)
        )
        places = resolve(loaded.settings)
        return _with_places(rows, places.state, places.socket, places.models)
    value = node.call(ShowConfig()).value
    rows = answer({"settings": value} if isinstance(value, list) else value, SettingRows).settings
    meta = read(node.get(f"{VIEWS}/meta"), Section[MetaView]).value
    if meta is None or not meta.state_dir:
        return rows
    state = Path(meta.state_dir)
    return _with_places(rows, state, node.socket, state / "models")


def _with_places(
    rows: tuple[SettingRow, ...], state: Path, socket: Path, models: Path
) -> tuple[SettingRow, ...]:
    places = {"RELAY_STATE_DIR": state, "RELAY_SOCKET": socket, "RELAY_MODEL_DIR": models}
    return tuple(
        msgspec.structs.replace(row, in_force=row.value or str(places[row.name]))
        if row.name in places
        else row
        for row in rows
    )


def _cells(row: SettingRow) -> tuple[str, ...]:
    return tuple(
        paint(text, "dim") if _is_default(row) else text for text in (row.name, row.shown, row.source)
    )


def _is_default(row: SettingRow) -> bool:
    return row.origin == DEFAULT_ORIGIN

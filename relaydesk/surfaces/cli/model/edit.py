"""``relaydesk model set`` and ``rm``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from relaydesk.config.kinds import show_duration
from relaydesk.core.commands import FitModel, RemoveModel, SetModel
from relaydesk.core.errors import FaultError
from relaydesk.core.pool.fit import FitReport
from relaydesk.core.text import SafeText, safe_text
from relaydesk.core.view.sections import ModelView
from relaydesk.surfaces.cli.attach import Node, answer, attach_option, find_node
from relaydesk.surfaces.cli.model.fields import FIELDS, chosen, field_options, parse_pair
from relaydesk.surfaces.cli.model.fit import beyond_training
from relaydesk.surfaces.cli.model.listing import model_named, usd
from relaydesk.surfaces.cli.output import note, say, tell
from relaydesk.surfaces.cli.prompt import confirm, yes_option
from relaydesk.surfaces.cli.status import unoffered_line


class Done(msgspec.Struct, frozen=True):
    """What the node says of a change. ``old`` and ``spec`` are the model before and after it."""

    note: SafeText = SafeText("")
    deleted: tuple[SafeText, ...] = ()
    old: dict[str, Any] = {}
    spec: dict[str, Any] = {}


@click.command("set")
@click.argument("name")
@click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1)
@field_options(defaults=False)
@attach_option
def edit(name: str, pairs: tuple[str, ...], attach: Path | None, **options: Any) -> None:
    """Change how the model NAME is run, from its next load on.

    Each KEY is an option's name: `ctx=8192` is the same as `--ctx 8192`. An empty value clears names and
    files: `alias=`.
    """
    changes = dict(parse_pair(pair) for pair in pairs) | chosen(options)
    if not changes:
        raise click.UsageError("Nothing to change: give KEY=VALUE or an option.")
    node = find_node(attach)
    before = model_named(node, name)
    done = answer(node.call(SetModel(name=name, changes=changes)).value or {}, Done)
    for line in _changed(name, changes, _known(before) | done.old, done.spec):
        say(line)
    if done.note:
        tell(f"{name} is loaded as it was: `relaydesk model unload {name}`, and its next load takes this up")
    if changes.get("offer"):
        row = model_named(node, name)
        if row is not None and (said := unoffered_line(row)):
            tell(said)
    if "ctx" in changes:
        warn_of_context(node, name)


def _known(row: ModelView | None) -> dict[str, Any]:
    """What the list of models shows of a model's settings."""
    if row is None:
        return {}
    shown = ("aliases", "slots", "keep_alive_s", "preload", "host_only", "offer", "input_rate", "output_rate")
    return {"ctx": row.context_length} | {key: getattr(row, key) for key in shown}


def _changed(name: str, changes: dict[str, Any], old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """A line for each setting that was given: what it was, where that is known, and what it is."""
    lines = []
    for field in FIELDS:
        if field.key not in changes:
            continue
        now = shown(field.key, new.get(field.key, changes[field.key]))
        was = shown(field.key, old[field.key]) if field.key in old else ""
        if was == now:
            lines.append(f"{name}: {field.option} is {now} already")
        else:
            lines.append(
                f"{name}: {field.option} {was} → {now}" if was else f"{name}: {field.option} → {now}"
            )
    return lines


def shown(key: str, value: Any) -> str:
    """A setting's value as people type it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "none"
    if key in ("input_rate", "output_rate"):
        return f"{usd(value)} USD"
    if key == "keep_alive_s":
        return "the node's" if value is None else "for ever" if value < 0 else show_duration(value)
    return safe_text(str(value), 120) or "none"


def warn_of_context(node: Node, name: str) -> None:
    """Say on stderr where the context is more than the model was trained for."""
    try:
        report = answer(node.call(FitModel(name=name)).value, FitReport)
    except FaultError:
        return  # a server's model, or one whose file cannot be read: nothing is known of its training
    if warning := beyond_training(report):
        note(f"warning: {warning}")


@click.command("rm")
@click.argument("name")
@yes_option
@attach_option
def remove(name: str, yes: bool, attach: Path | None) -> None:
    """Forget the model NAME. Its file is deleted only if relaydesk itself wrote it."""
    node = find_node(attach)
    row = model_named(node, name)
    if row is not None:  # where there is none, the node says so
        confirm(f"model rm {name}", f"forgets {row.name}", RemoveModel.danger, yes=yes)
    done = answer(node.call(RemoveModel(name=name)).value or {}, Done)
    say(f"{name} is removed" + ("" if done.deleted else "; no file was deleted"))
    for path in done.deleted:
        say(f"  deleted {path}")

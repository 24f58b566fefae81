"""``relaydesk model set`` and ``rm``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from relaydesk.core.commands import RemoveModel, SetModel
from relaydesk.core.text import SafeText
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node
from relaydesk.surfaces.cli.model.fields import chosen, field_options, parse_pair
from relaydesk.surfaces.cli.output import say
from relaydesk.surfaces.cli.prompt import confirm, yes_option


class Done(msgspec.Struct, frozen=True):
    """What the node says of a change."""

    note: SafeText = SafeText("")
    deleted: tuple[SafeText, ...] = ()


@click.command("set")
@click.argument("name")
@click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1)
@field_options()
@attach_option
def edit(name: str, pairs: tuple[str, ...], attach: Path | None, **options: Any) -> None:
    """Change how the model NAME is run, from its next load on.

    Each KEY is an option's name: `ctx=8192` is the same as `--ctx 8192`. An empty value clears names and
    files: `alias=`.
    """
    changes = dict(parse_pair(pair) for pair in pairs) | chosen(options)
    if not changes:
        raise click.UsageError("Nothing to change: give KEY=VALUE or an option.")
    done = answer(find_node(attach).call(SetModel(name=name, changes=changes)).value or {}, Done)
    say(f"{name} is changed" + (f": {done.note}" if done.note else ""))


@click.command("rm")
@click.argument("name")
@yes_option
@attach_option
def remove(name: str, yes: bool, attach: Path | None) -> None:
    """Forget the model NAME. Its file is deleted only if relaydesk itself wrote it."""
    node = find_node(attach)
    confirm(f"Remove {name}?", RemoveModel.danger, yes=yes)
    done = answer(node.call(RemoveModel(name=name)).value or {}, Done)
    say(f"{name} is removed" + ("" if done.deleted else "; no file was deleted"))
    for path in done.deleted:
        say(f"  deleted {path}")

"""``relaydesk model load`` and ``unload``."""

from __future__ import annotations

from pathlib import Path

import click

from relaydesk.core.commands import LoadModel, UnloadModel
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node
from relaydesk.surfaces.cli.follow import follow
from relaydesk.surfaces.cli.model.edit import Done
from relaydesk.surfaces.cli.output import say


@click.command()
@click.argument("name")
@attach_option
def load(name: str, attach: Path | None) -> None:
    """Load the model NAME now, and wait until it answers."""
    node = find_node(attach)
    outcome = node.call(LoadModel(name=name))
    if outcome.job:
        follow(node, outcome.job, resumes="the same command loads it again")
    say(f"{name} is warm")


@click.command()
@click.argument("name")
@attach_option
def unload(name: str, attach: Path | None) -> None:
    """Unload the model NAME: at once where it is idle, else when its last request ends."""
    node = find_node(attach)
    outcome = node.call(UnloadModel(name=name))
    note = answer(outcome.value or {}, Done).note
    say(f"{name}: {note}" if note else f"{name} is unloaded, or will be when its last request has ended")

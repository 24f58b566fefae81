"""``relaydesk model load`` and ``unload``."""

from __future__ import annotations

from pathlib import Path

import click

from relaydesk.core.commands import LoadModel, UnloadModel
from relaydesk.core.errors import FaultError, LocalError
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node
from relaydesk.surfaces.cli.follow import follow
from relaydesk.surfaces.cli.model.edit import Done
from relaydesk.surfaces.cli.output import say, tell


@click.command()
@click.argument("name")
@attach_option
def load(name: str, attach: Path | None) -> None:
    """Load the model NAME now, and wait until it answers."""
    node = find_node(attach)
    try:
        outcome = node.call(LoadModel(name=name))
        if outcome.job:
            follow(node, outcome.job, resumes="the same command loads it again")
    except FaultError as error:
        raise _with_next_step(error, name) from None
    say(f"{name} is warm")


def _with_next_step(error: FaultError, name: str) -> FaultError:
    """The body of the refusal is the same for every front; what to do about it here is the report."""
    fault = error.fault
    if fault.code != "model_unavailable" or fault.hint or "needs about" not in fault.message:
        return error
    return LocalError(fault.code, fault.message, f"`relaydesk model fit {name}` says what would help")


@click.command()
@click.argument("name")
@attach_option
def unload(name: str, attach: Path | None) -> None:
    """Unload the model NAME: at once where it is idle, else when its last request ends."""
    node = find_node(attach)
    outcome = node.call(UnloadModel(name=name))
    note = answer(outcome.value or {}, Done).note
    tell(f"{name}: {note}" if note else f"{name} is unloaded, or will be when its last request has ended")

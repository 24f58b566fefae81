"""``relaydesk directory``: its verbs."""

from __future__ import annotations

import click

from relaydesk.surfaces.cli.lazy import LazyGroup
from relaydesk.surfaces.cli.verbs import verb


@click.group(cls=LazyGroup, verbs=verb("directory").below)
def directory() -> None:
    """A directory of the relay network, kept by you: whom it admits, and which nodes those have."""

"""``relaydesk key``: its verbs."""

from __future__ import annotations

import click

from relaydesk.surfaces.cli.lazy import LazyGroup
from relaydesk.surfaces.cli.verbs import verb


@click.group(cls=LazyGroup, verbs=verb("key").below)
def key() -> None:
    """Named keys, each with limits of its own."""

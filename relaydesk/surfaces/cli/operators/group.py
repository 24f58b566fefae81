"""``relaydesk operators``: its verbs."""

from __future__ import annotations

import click

from relaydesk.surfaces.cli.lazy import LazyGroup
from relaydesk.surfaces.cli.verbs import verb


@click.group(cls=LazyGroup, verbs=verb("operators").below)
def operators() -> None:
    """Operators of the relay network: who they are, and what this node makes of them."""

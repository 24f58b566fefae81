"""``relaydesk ledger``: its verbs."""

from __future__ import annotations

import click

from relaydesk.surfaces.cli.lazy import LazyGroup
from relaydesk.surfaces.cli.verbs import verb


@click.group(cls=LazyGroup, verbs=verb("ledger").below)
def ledger() -> None:
    """Credit of the relay network, in integer microunits."""

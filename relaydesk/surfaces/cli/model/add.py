"""``relaydesk model add``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from relaydesk.core.commands import AddModel
from relaydesk.core.errors import LocalError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.surfaces.cli.attach import attach_option, find_node
from relaydesk.surfaces.cli.model.fields import chosen, field_options, name_option
from relaydesk.surfaces.cli.output import say

# A file on a slow disk may have to be read before the node knows what it is.
_ADD_S = 600.0


@click.command()
@click.argument("source", metavar="PATH|URL")
@name_option
@field_options(without=frozenset({"path", "url"}))
@attach_option
def add(source: str, name: str | None, attach: Path | None, **options: Any) -> None:
    """Register a GGUF file where it is, or a server at URL that speaks OpenAI's API.

    The file stays where it is and is never deleted by relaydesk.
    """
    changes = chosen(options)
    spec = _far(source, name, changes) if _is_url(source) else _file(source, name, changes)
    node = find_node(attach)
    node.call(AddModel(spec=spec), timeout=_ADD_S)
    say(f"{spec.name} is registered: `relaydesk model fit {spec.name}` says whether it fits")


def _is_url(source: str) -> bool:
    return source.lower().startswith(("http://", "https://"))


def _far(url: str, name: str | None, changes: dict[str, Any]) -> ModelSpec:
    far_name = changes.get("url_model") or ""
    return ModelSpec(
        kind="url",
        url=url,
        source=url,
        name=name or _suggest(far_name, urlsplit(url).hostname or ""),
        **changes,
    )


def _file(source: str, name: str | None, changes: dict[str, Any]) -> ModelSpec:
    if changes.pop("url_model", None):
        raise LocalError(
            "invalid_request", "--url-model belongs to a URL", f"{source} is a file: leave it out"
        )
    path = os.path.abspath(os.path.expanduser(source))
    return ModelSpec(path=path, source=path, name=name or _suggest(Path(path).stem), **changes)


def _suggest(*texts: str) -> str:
    from relaydesk.engine.pull.naming import suggest_name

    return suggest_name(*texts)

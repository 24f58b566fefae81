"""``relaydesk model add``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec

from relaydesk.config.secret_file import read_secret_file
from relaydesk.core.commands import AddModel
from relaydesk.core.errors import LocalError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.text import SafeText
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node
from relaydesk.surfaces.cli.model.fields import chosen, field_options, name_option
from relaydesk.surfaces.cli.output import say

# A file on a slow disk may have to be read before the node knows what it is.
_ADD_S = 600.0


class Registered(msgspec.Struct, frozen=True):
    """What the node registered."""

    name: SafeText = SafeText("")


@click.command()
@click.argument("source", metavar="PATH|URL")
@name_option
@field_options(without=frozenset({"path", "url"}))
@click.option(
    "--url-key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="For a model on another server: a file with the API key of that server.",
)
@attach_option
def add(
    source: str, name: str | None, attach: Path | None, url_key_file: Path | None, **options: Any
) -> None:
    """Register a GGUF file where it is, or a server at URL that speaks OpenAI's API.

    The file stays where it is and is never deleted by relaydesk.
    """
    changes = chosen(options)
    spec = _far(source, name, changes) if _is_url(source) else _file(source, name, changes)
    if url_key_file is not None and spec.kind != "url":
        raise LocalError(
            "invalid_request", "--url-key-file belongs to a URL", f"{source} is a file: leave it out"
        )
    key = read_secret_file(url_key_file, "URL_KEY") if url_key_file is not None else ""
    outcome = find_node(attach).call(AddModel(spec=spec, url_key=key), timeout=_ADD_S)
    found = answer(outcome.value or {}, Registered).name or spec.name
    say(f"{found} is registered: `relaydesk model fit {found}` says whether it fits")


def _is_url(source: str) -> bool:
    return source.lower().startswith(("http://", "https://"))


def _far(url: str, name: str | None, changes: dict[str, Any]) -> ModelSpec:
    if not name:
        from relaydesk.engine.pull.naming import suggest_name

        name = suggest_name(changes.get("url_model") or "", urlsplit(url).hostname or "")
    return ModelSpec(kind="url", url=url, source=url, name=name, **changes)


def _file(source: str, name: str | None, changes: dict[str, Any]) -> ModelSpec:
    if changes.pop("url_model", None):
        raise LocalError(
            "invalid_request", "--url-model belongs to a URL", f"{source} is a file: leave it out"
        )
    # Without a name the node takes one from the file itself.
    path = os.path.abspath(os.path.expanduser(source))
    return ModelSpec(path=path, source=path, name=name or "", **changes)

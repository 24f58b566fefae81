"""``relaydesk model add``."""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click
import msgspec

from relaydesk.config.secret_file import read_secret_file
from relaydesk.core.commands import AddModel
from relaydesk.core.errors import LocalError
from relaydesk.core.pool.model import ModelSpec
from relaydesk.core.pool.reference import SMOLLM2
from relaydesk.core.text import SafeText, safe_text
from relaydesk.engine.pull.naming import suggest_name
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node
from relaydesk.surfaces.cli.model.edit import warn_of_context
from relaydesk.surfaces.cli.model.fields import chosen, field_options, name_option
from relaydesk.surfaces.cli.output import tell

# A file on a slow disk may have to be read before the node knows what it is.
_ADD_S: Final = 600.0
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HOST_PORT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*:[0-9]{1,5}(/|$)")


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
    key = read_secret_file(url_key_file, "URL_KEY_FILE") if url_key_file is not None else ""
    node = find_node(attach)
    outcome = node.call(AddModel(spec=spec, url_key=key), timeout=_ADD_S)
    found = answer(outcome.value or {}, Registered).name or spec.name
    if spec.kind == "url":
        tell(f"{found} is registered: `relaydesk model load {found}` says whether its server answers")
        return
    tell(f"{found} is registered: `relaydesk model fit {found}` says whether it fits")
    if "ctx" in changes:
        warn_of_context(node, found)


def _is_url(source: str) -> bool:
    """Whether it is a server's address. Raises `LocalError` for what is neither that nor a path."""
    if not source.strip():
        raise LocalError("invalid_request", "the path is empty", "give a GGUF file or a server's URL")
    scheme = _SCHEME.match(source)
    if scheme is None:
        if source == SMOLLM2 or source.lower().startswith("hf:"):
            raise LocalError(
                "invalid_request", f"{source} is no file", f"fetch it with `relaydesk model pull {source}`"
            )
        if _HOST_PORT.match(source) and not os.path.exists(source):
            raise LocalError(
                "invalid_request", f"{source} is no file", f"a server is written http://{source}"
            )
        return False
    if scheme[1].lower() not in ("http", "https"):
        raise LocalError(
            "invalid_request",
            f"{safe_text(source, 120)} is no address of a server that speaks OpenAI's API",
            "give one that begins with http:// or https://, or fetch the file and add it by its path",
        )
    return True


def _server_name(url: str, url_model: str) -> str:
    """A name for a server's model: its own name there, else the host's, unless that is a number."""
    host = urlsplit(url).hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        host = ""
    return suggest_name(url_model, "" if host == "localhost" else host, "server")


def _far(url: str, name: str | None, changes: dict[str, Any]) -> ModelSpec:
    if not name:
        name = _server_name(url, changes.get("url_model") or "")
    return ModelSpec(kind="url", url=url, source=url, name=name, **changes)


def _file(source: str, name: str | None, changes: dict[str, Any]) -> ModelSpec:
    if changes.pop("url_model", None):
        raise LocalError(
            "invalid_request", "--url-model belongs to a URL", f"{source} is a file: leave it out"
        )
    # Without a name the node takes one from the file itself.
    path = os.path.abspath(os.path.expanduser(source))
    return ModelSpec(path=path, source=path, name=name or "", **changes)

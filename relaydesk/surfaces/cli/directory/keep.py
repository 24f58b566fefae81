"""``relaydesk directory init``, ``admit`` and ``sign``: a directory's folder, with or without a node."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from relaydesk.core.errors import LocalError
from relaydesk.surfaces.cli.attach import json_option
from relaydesk.surfaces.cli.output import note, print_json, say
from relaydesk.surfaces.cli.settings import load_settings

if TYPE_CHECKING:
    from relaydesk.engine.relay.directory.shelf import Shelf

F = TypeVar("F", bound=Callable[..., Any])

FOLDER: Final = "directory"
_folder: Callable[[F], F] = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="PATH",
    help="Where the directory is kept; usually `directory` in the state directory, where a node serves it.",
)
folder_option = _folder


def shelf_of(folder: Path | None) -> Shelf:
    """The directory's folder that was given, or the usual one."""
    from relaydesk.config.paths import resolve
    from relaydesk.engine.relay.directory.shelf import Shelf

    return Shelf(folder if folder is not None else resolve(load_settings().settings).state / FOLDER)


@click.command()
@folder_option
@click.option("--name", default="", help="What readers see it called.")
@json_option
def init(folder: Path | None, name: str, as_json: bool) -> None:
    """Begin a directory: make its key, and print the address that readers pin."""
    from relaydesk.engine.clock import SystemRng

    shelf = shelf_of(folder)
    key = shelf.create(name, SystemRng())
    shelf.sign(int(time.time()))
    if as_json:
        print_json({"address": key.address, "folder": str(shelf.folder)})
        return
    say(key.address)
    note(
        f"Readers pin it as {key.address}@https://HOST. It is kept in {shelf.folder}: who has the key there "
        "decides for all of them. Next: `relaydesk directory admit`."
    )


@click.command()
@click.argument("owner")
@folder_option
@click.option("--name", default="", help="What readers see the operator called.")
@click.option("--evict", is_flag=True, help="Do not admit it any more: readers hide its nodes.")
@json_option
def admit(owner: str, folder: Path | None, name: str, evict: bool, as_json: bool) -> None:
    """Admit OWNER, the address of an owner key, and sign. Ask yourself whether it is somebody of its own."""
    from relaydesk.core.relay.directory.certificate import operator_of

    try:
        operator = operator_of(owner)
    except ValueError as error:
        raise LocalError("invalid_request", f"OWNER is no address ({error})", param="owner") from None
    shelf = shelf_of(folder)
    shelf.admit(owner, "evicted" if evict else "active", name)
    shelf.sign(int(time.time()))
    if as_json:
        print_json({"operator": str(operator), "owner": owner, "status": "evicted" if evict else "active"})
    else:
        say(f"operator {operator} is {'evicted' if evict else 'admitted'}")


@click.command()
@folder_option
@json_option
def sign(folder: Path | None, as_json: bool) -> None:
    """Sign the directory now, good for a day. A node that keeps it, and `serve`, do so by themselves."""
    from relaydesk.core.relay.directory.document import open_document

    shelf = shelf_of(folder)
    now = int(time.time())
    data = shelf.sign(now)
    document = open_document(data, shelf.key().address, now)
    if as_json:
        print_json(
            {
                "version": document.version,
                "expires_ms": document.expires_at * 1000,
                "operators": len(document.operators),
                "nodes": len(document.records),
                "file": str(shelf.document_file),
            }
        )
        return
    until = datetime.fromtimestamp(document.expires_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    say(
        f"version {document.version}: {len(document.operators)} operators, {len(document.records)} nodes, "
        f"valid until {until}"
    )
    say(f"{shelf.document_file}")

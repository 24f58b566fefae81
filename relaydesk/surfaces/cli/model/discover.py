"""``relaydesk model discover``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
import msgspec

from relaydesk.core.commands import DiscoverModels
from relaydesk.core.text import SafeText, safe_text
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node, json_option
from relaydesk.surfaces.cli.output import paint, print_json, say, size, tell


class Found(msgspec.Struct, frozen=True):
    """A model file of another program."""

    name: SafeText
    path: str
    size_bytes: int = 0
    source: SafeText = SafeText("")
    projector: str | None = None
    registered: bool = False


@click.command()
@json_option
@attach_option
def discover(as_json: bool, attach: Path | None) -> None:
    """Model files in the caches of Ollama, LM Studio and the Hub that can be added where they are."""
    value = _rows(find_node(attach).call(DiscoverModels()).value)
    if as_json:
        print_json({"models": value})
        return
    found = answer(value, tuple[Found, ...])
    if not found:
        tell("No model file of another program was found. Get one: `relaydesk model pull smollm2`")
    for row in found:
        say(f"{paint(row.name, 'bold')}  {size(row.size_bytes)}  {row.source}")
        say("  registered already" if row.registered else f"  {_add_line(row)}")


def _rows(value: Any) -> Any:
    return value.get("models", ()) if isinstance(value, dict) else value


def _add_line(row: Found) -> str:
    """The command that adds it; none for a path with what no terminal should be sent."""
    if not row.path.isprintable():
        return f"{safe_text(row.path)} has a name that cannot be typed: rename it first"
    line = f"relaydesk model add {shlex.quote(row.path)} --name {shlex.quote(row.name)}"
    return line + (f" --projector {shlex.quote(row.projector)}" if row.projector else "")

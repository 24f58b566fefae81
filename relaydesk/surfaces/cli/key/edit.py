"""``relaydesk key add``, ``set`` and ``rm``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from relaydesk.core.commands import AddKey, RemoveKey, SetKey
from relaydesk.surfaces.cli.attach import attach_option, find_node, json_option
from relaydesk.surfaces.cli.key.options import buys_nothing, facts, setting_options, settings_of
from relaydesk.surfaces.cli.output import note, print_json, say
from relaydesk.surfaces.cli.prompt import confirm, yes_option


@click.command()
@click.argument("name")
@setting_options
@click.option(
    "--in-path",
    is_flag=True,
    help="For tools that cannot send a key: it stands in the URL and opens nothing else.",
)
@json_option
@attach_option
def add(name: str, in_path: bool, as_json: bool, attach: Path | None, **options: Any) -> None:
    """Make a key called NAME. Its secret is shown now and never again."""
    settings = settings_of(options)
    if in_path:
        settings["in_path"] = True
    value = find_node(attach).call(AddKey(name=name, settings=settings)).value
    if as_json:
        print_json(value)
        return
    say(value["key"])
    note(f"This is the only time that the secret of {name} is shown: give it to its client now.")
    for what, shown in facts(value):
        note(f"  {what}: {shown}" + (buys_nothing(value) if what == "credit a day" else ""))


@click.command("set")
@click.argument("name")
@setting_options
@json_option
@attach_option
def edit(name: str, as_json: bool, attach: Path | None, **options: Any) -> None:
    """Change what the key NAME may do, from its next request on. What is not given stays."""
    settings = settings_of(options)
    if not settings:
        raise click.UsageError("Nothing to change: give an option.")
    value = find_node(attach).call(SetKey(name=name, settings=settings)).value
    if as_json:
        print_json(value)
        return
    for (what, now), (_, was) in zip(facts(value), facts(value["old"]), strict=True):
        if now != was:
            say(f"{name}: {what} {was} → {now}")
    if facts(value) == facts(value["old"]):
        say(f"{name}: it is so already")
    if buys_nothing(value):
        note(f"credit a day: 0{buys_nothing(value)}")


@click.command("rm")
@click.argument("name")
@yes_option
@attach_option
def remove(name: str, yes: bool, attach: Path | None) -> None:
    """Revoke the key NAME at once. Its running requests end in peace; what it used stays on record."""
    node = find_node(attach)
    confirm(f"key rm {name}", f"revokes {name}", RemoveKey.danger, yes=yes)
    running = node.call(RemoveKey(name=name)).value["running"]
    say(f"{name} is revoked" + (f"; {running} of its requests are still running" if running else ""))

"""``relaydesk token``: the default key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from relaydesk.config.paths import resolve
from relaydesk.core.commands import RotateDefaultKey, ShowDefaultKey
from relaydesk.core.errors import EnvError, FaultError
from relaydesk.surfaces.cli.attach import attach_option, find_node, json_option
from relaydesk.surfaces.cli.output import note, print_json, say
from relaydesk.surfaces.cli.prompt import confirm, yes_option
from relaydesk.surfaces.cli.settings import load_settings


@click.command()
@click.option("--api", is_flag=True, help="The key that clients of the API send.")
@click.option("--rotate", is_flag=True, help="Replace it; the old one stops working at once.")
@yes_option
@json_option
@attach_option
def token(api: bool, rotate: bool, yes: bool, as_json: bool, attach: Path | None) -> None:
    """Show the default API key, or replace it.

    Shown from the state directory where no node is running; replaced only by a running one.
    """
    if not (api or rotate):
        raise click.UsageError("Say which: --api shows the key that clients of the API send.")
    key = _rotated(attach, yes=yes) if rotate else _shown(attach)
    if as_json:
        print_json({"name": "default", "key": key})
    else:
        say(key)


def _rotated(attach: Path | None, *, yes: bool) -> str:
    node = find_node(attach)
    confirm("token --rotate", "replaces the default key", RotateDefaultKey.danger, yes=yes)
    key = _key_of(node.call(RotateDefaultKey()).value)
    note("The old key no longer works: give every client this one.")
    return key


def _shown(attach: Path | None) -> str:
    try:
        return _key_of(find_node(attach).call(ShowDefaultKey()).value)
    except FaultError as error:
        if error.fault.code != "no_node" or attach is not None:
            raise
    return _stored()


def _stored() -> str:
    """The key that the next start would use."""
    from relaydesk.core.access.default_key import SECRET_NAME
    from relaydesk.store.secret_store import stored_secret

    settings = load_settings().settings
    state = resolve(settings).state
    found = settings.api_key or stored_secret(state, SECRET_NAME)
    if not found:
        raise EnvError(
            "no_node",
            f"no node is running and {state} holds no key yet",
            "the first start makes one: `relaydesk serve`",
        )
    return found


def _key_of(value: Any) -> str:
    """The key in a command's answer."""
    key = value.get("key") if isinstance(value, dict) else value
    if not isinstance(key, str) or not key:
        raise EnvError("internal_error", "the node's answer holds no key", "restart the node")
    return key

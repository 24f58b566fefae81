"""``relaydesk tls``: the hub's own certificate authority."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from relaydesk.core.commands import RenewCa
from relaydesk.core.text import SafeText
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node
from relaydesk.surfaces.cli.lazy import LazyGroup
from relaydesk.surfaces.cli.output import say, tell
from relaydesk.surfaces.cli.prompt import confirm, yes_option
from relaydesk.surfaces.cli.verbs import verb


class NewCa(msgspec.Struct, frozen=True):
    """What the node says of a new CA."""

    fingerprint: SafeText = SafeText("")
    ca_path: SafeText = SafeText("")


@click.group(cls=LazyGroup, verbs=verb("tls").below)
def tls() -> None:
    """The certificate authority that signs this node's certificate."""


@click.command("renew-ca")
@yes_option
@attach_option
def renew_ca(yes: bool, attach: Path | None) -> None:
    """Make a new certificate authority, and say who must be told."""
    node = find_node(attach)
    confirm("tls renew-ca", "makes a new certificate authority", RenewCa.danger, yes=yes)
    found = answer(node.call(RenewCa()).value or {}, NewCa)
    if found.fingerprint:
        say(f"fingerprint  {found.fingerprint}")
    if found.ca_path:
        say(f"CA file      {found.ca_path}")
    tell("Give the new CA file to every client; machines that joined must be given the new fingerprint.")

"""``relaydesk operators trust``, ``block`` and ``forget``."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from relaydesk.core.commands import BlockOperator, ForgetOperator, TrustOperator
from relaydesk.core.text import SafeText
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node
from relaydesk.surfaces.cli.output import say
from relaydesk.surfaces.cli.prompt import confirm, yes_option


class Decided(msgspec.Struct, frozen=True):
    """What the node says of an operator that was decided about."""

    operator: SafeText = SafeText("")
    name: SafeText = SafeText("")
    eligible: int = 0

    def __str__(self) -> str:
        return f"{self.name} ({self.operator})" if self.name else str(self.operator)


@click.command()
@click.argument("owner", metavar="OPERATOR")
@attach_option
def trust(owner: str, attach: Path | None) -> None:
    """Use the nodes of OPERATOR: its id, its name, or its owner's address, whatever directories say."""
    found = answer(find_node(attach).call(TrustOperator(owner)).value or {}, Decided)
    say(f"operator {found} is trusted; {_nodes(found.eligible)} can be used now")


@click.command()
@click.argument("owner", metavar="OPERATOR")
@attach_option
def block(owner: str, attach: Path | None) -> None:
    """Never use the nodes of OPERATOR: its id, its name, or its owner's address."""
    found = answer(find_node(attach).call(BlockOperator(owner)).value or {}, Decided)
    say(f"operator {found} is blocked")


@click.command()
@click.argument("owner", metavar="OPERATOR")
@yes_option
@attach_option
def forget(owner: str, yes: bool, attach: Path | None) -> None:
    """Take back what was decided about OPERATOR: from now on directories decide."""
    node = find_node(attach)
    confirm(f"operators forget {owner}", "forgets an operator", ForgetOperator.danger, yes=yes)
    found = answer(node.call(ForgetOperator(owner)).value or {}, Decided)
    say(f"operator {found} is forgotten; {_nodes(found.eligible)} can be used now")


def _nodes(count: int) -> str:
    return "1 of its nodes" if count == 1 else f"{count} of its nodes"

"""``relaydesk operators list``."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from relaydesk.core.commands import ShowOperators
from relaydesk.core.text import SafeText
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node, json_option
from relaydesk.surfaces.cli.output import print_json, say, table

_NONE = SafeText("")


class Own(msgspec.Struct, frozen=True):
    """Who this node is."""

    operator: SafeText = _NONE
    node: int = 0
    owner: SafeText = _NONE
    signing: SafeText = _NONE
    self_certified: bool = False


class NodeRow(msgspec.Struct, frozen=True):
    """One node of an operator."""

    node: int
    base_url: SafeText
    standing: SafeText
    why: SafeText = _NONE
    staging: bool = False


class OperatorRow(msgspec.Struct, frozen=True):
    """One operator."""

    operator: SafeText
    owner: SafeText
    name: SafeText = _NONE
    choice: SafeText = _NONE
    nodes: tuple[NodeRow, ...] = ()


class Operators(msgspec.Struct, frozen=True):
    """What the node answers."""

    own: Own
    operators: tuple[OperatorRow, ...] = ()
    more: int = 0


@click.command("list")
@json_option
@attach_option
def listing(as_json: bool, attach: Path | None) -> None:
    """The network's operators as this node sees them, and who this node is there."""
    value = find_node(attach).call(ShowOperators()).value or {}
    if as_json:
        print_json(value)
        return
    found = answer(value, Operators)
    own = found.own
    say(f"this node      {own.operator}:{own.node}")
    say(f"its owner      {own.owner}" + (" (the key is kept here)" if own.self_certified else ""))
    say(f"its signing key {own.signing}")
    if not found.operators:
        say("no operator is known: pin a directory with RELAY_DIRECTORIES")
        return
    say()
    rows = [
        [f"{row.operator}:{node.node}", row.name or "-", _standing(row, node), node.base_url, node.why]
        for row in found.operators
        for node in row.nodes
    ]
    rows += [[row.operator, row.name or "-", row.choice, "-", "no directory lists a node of it"]
             for row in found.operators if not row.nodes]  # fmt: skip
    for line in table(["node", "name", "standing", "base URL", "why"], rows, shrink=(4, 3)):
        say(line)
    say()
    for row in found.operators:
        say(f"  {row.operator} is {row.owner}")
    if found.more:
        say(f"  and {found.more} more operators")


def _standing(row: OperatorRow, node: NodeRow) -> str:
    said = "trusted" if node.standing == "admitted" and row.choice == "trusted" else str(node.standing)
    return f"{said}, relays only" if node.staging else said

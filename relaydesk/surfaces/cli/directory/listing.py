"""``relaydesk directory list``: what the directory that is kept here says, without a node."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from relaydesk.core.text import safe_text
from relaydesk.surfaces.cli.attach import json_option
from relaydesk.surfaces.cli.directory.keep import folder_option, shelf_of
from relaydesk.surfaces.cli.output import print_json, say, table, tell

if TYPE_CHECKING:
    from relaydesk.core.relay.directory.document import Operator
    from relaydesk.core.relay.directory.record import NodeRecord


@click.command("list")
@folder_option
@json_option
def listing(folder: Path | None, as_json: bool) -> None:
    """Whom the directory kept here admits or evicted, and the nodes that they handed in."""
    from relaydesk.core.relay.directory.certificate import operator_of

    shelf = shelf_of(folder)
    address = shelf.key().address
    held = shelf.read(int(time.time()))
    nodes = {each.owner: [row for row in held.records if row.owner == each.owner] for each in held.operators}
    if as_json:
        operators = [
            {
                "operator": str(operator_of(each.owner)),
                "owner": each.owner,
                "name": each.name,
                "status": each.status,
                "nodes": [_node(row) for row in nodes[each.owner]],
            }
            for each in held.operators
        ]
        print_json({"address": address, "name": held.name, "operators": operators})
        return
    say(f"directory {address}" + (f" ({safe_text(held.name)})" if held.name else ""))
    if not held.operators:
        tell("It admits nobody yet: `relaydesk directory admit OWNER`.")
        return
    say()
    rows = [row for each in held.operators for row in _rows(each, operator_of(each.owner), nodes[each.owner])]
    for line in table(("NODE", "NAME", "STANDING", "BASE URL", "CERTIFIED UNTIL"), rows, shrink=(3, 1)):
        say(line)
    say()
    for each in held.operators:
        say(f"  {operator_of(each.owner)} is {each.owner}")


def _rows(operator: Operator, number: int, nodes: list[NodeRecord]) -> list[tuple[str, ...]]:
    """A line for each node of an operator, or one that says that it has none."""
    name = operator.name or "–"
    standing = "admitted" if operator.status == "active" else "evicted"
    if not nodes:
        none = "evicted: its nodes are hidden" if operator.status == "evicted" else "no node has come yet"
        return [(str(number), name, standing, none, "–")]
    return [
        (
            str(each.ref),
            name,
            standing if each.status == "active" else "withdrawn",
            str(each.base_url),
            datetime.fromtimestamp(each.certificate.expires_at, UTC).strftime("%Y-%m-%d"),
        )
        for each in nodes
    ]


def _node(record: NodeRecord) -> dict[str, object]:
    return {
        "node": record.ref.node,
        "base_url": str(record.base_url),
        "status": record.status,
        "staging": record.staging,
        "version": record.version,
        "certified_until_ms": record.certificate.expires_at * 1000,
    }

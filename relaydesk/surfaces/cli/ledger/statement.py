"""``relaydesk ledger statement``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
import msgspec

from relaydesk.core.commands import FetchStatement, ShowStatement
from relaydesk.core.errors import EnvError, LocalError, PeerError
from relaydesk.core.ledger.account import Row
from relaydesk.core.ledger.compare import compare
from relaydesk.core.ledger.records import Claim
from relaydesk.core.ledger.statement import Statement, fault_in, read_statement, to_csv
from relaydesk.surfaces.cli.attach import Node, answer, attach_option, find_node, json_option
from relaydesk.surfaces.cli.output import note, print_json, say, table, tell

# What to do with a statement that does not hold: a file was changed, books were not.
_THE_FILE: Final = (
    "the file was changed after the node signed it: fetch the statement anew (`relaydesk ledger statement`, "
    "with --at for an account at another node) and compare the two with --compare"
)
_THE_NODE: Final = "keep it as it is (--json), and ask the node's operator about that row"
_MOST_BYTES: Final = 256 * 1024 * 1024


@click.command()
@click.argument("account", default="")
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values, all of every row.")
@click.option(
    "--compare",
    "other",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Name the first difference to a statement saved as JSON or CSV; exit 1 where there is one.",
)
@click.option(
    "--with",
    "saved",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Read this saved statement instead of asking the node.",
)
@click.option(
    "--at",
    "at",
    metavar="OPERATOR:NODE",
    default="",
    help="Our own account at that node, fetched there; exit 1 where our book does not bear it out.",
)
@json_option
@attach_option
def statement(
    account: str,
    as_csv: bool,
    other: Path | None,
    saved: Path | None,
    at: str,
    as_json: bool,
    attach: Path | None,
) -> None:
    """Every row of ACCOUNT at this node, oldest first.

    ACCOUNT is an address or its beginning, and may be left out where there is one. An account of ours at
    another node is kept there: name that node with --at.
    """
    if at and (account or saved is not None):
        raise click.UsageError("--at is about our account at another node: give neither ACCOUNT nor --with")
    if at:
        found = _fetch_at(find_node(attach), at)
    else:
        found = _read(saved) if saved is not None else _fetch(find_node(attach), account)
    if other is not None:
        _compare(found, _read(other), as_json, saved=saved is not None)
        return
    if as_json:
        print_json(found)
        return
    if as_csv:
        click.echo(to_csv(found), nl=False)
        return
    _show(found, _THE_FILE if saved is not None else _THE_NODE)


def _fetch(node: Node, account: str) -> Statement:
    """The whole account, page by page: what is booked meanwhile is left for the next statement."""
    first = answer(node.call(ShowStatement(account=account)).value, Statement)
    head, rows = first.statement, list(first.rows)
    while len(rows) < head.rows:
        page = answer(node.call(ShowStatement(account=head.account, after=len(rows))).value, Statement)
        if not page.rows:
            raise PeerError("internal_error", "the node's statement ends too early", "try again")
        rows += page.rows
    return Statement(head, tuple(rows[: head.rows]))


def _fetch_at(node: Node, at: str) -> Statement:
    """Our account at another node, once our own book bears it out. Raises `PeerError`."""
    value = node.call(FetchStatement(at)).value
    first = answer(value, Statement)
    wrong = value["disagreement"]
    if wrong:
        raise PeerError(
            "operator_inconsistent_response",
            f"the statement of node {at} does not hold: {wrong}",
            "ask its operator; what our node agreed to is in its own book",
        )
    rows = list(first.rows)
    while len(rows) < first.statement.rows:
        page = answer(node.call(FetchStatement(at, len(rows))).value, Statement)
        if not page.rows or page.statement != first.statement:
            raise PeerError("internal_error", "the node's statement ends too early", "try again")
        rows += page.rows
    return Statement(first.statement, tuple(rows))


def _read(path: Path) -> Statement:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise LocalError("invalid_request", f"{path} is too large for a statement")
        return read_statement(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise EnvError(
            "invalid_request", f"{path} cannot be read: {reason}", "save one with --json or --csv"
        ) from error


def _compare(first: Statement, second: Statement, as_json: bool, *, saved: bool) -> None:
    found = compare(first, second)
    broken = {name: fault_in(each) for name, each in (("first", first), ("second", second))}
    equal = found.difference is None and not any(broken.values())
    if as_json:
        print_json({"equal": equal, "faults": broken, **msgspec.to_builtins(found, enc_hook=str)})
    else:
        for name, fault in broken.items():
            if fault:
                tell(f"The {name} does not hold by itself: {fault}.")
        if found.difference is not None:
            tell(f"The first difference is in {found.difference.sentence}.")
        elif found.more:
            longer = "first" if found.more > 0 else "second"
            tell(f"{found.same:,} rows are equal; the {longer} goes on for {abs(found.more):,} more.")
        else:
            tell(f"All {found.same:,} rows are equal.")
        if broken["second"] or broken["first"]:
            note(_THE_FILE if broken["second"] or saved else _THE_NODE)
    if not equal:
        raise click.exceptions.Exit(1)


def _show(found: Statement, next_step: str) -> None:
    head = found.statement
    tell(f"{head.account} at {head.operator}:{head.node}")
    rows = [_cells(row) for row in found.rows]
    for line in table(("ROW", "WHEN", "WHAT", "TRANSACTION", "CHANGE", "BALANCE", "HELD", "EARNED"), rows):
        say(line)
    tell(f"{head.balance:,} microunits can be spent, {head.held:,} is held.")
    fault = fault_in(found)
    if fault:
        raise PeerError("operator_inconsistent_response", f"the statement does not hold: {fault}", next_step)


def _what(row: Row) -> str:
    """The kind of a row, and of a claim whose it is."""
    return f"{row.kind} ({row.record.side})" if isinstance(row.record, Claim) else row.kind


def _cells(row: Row) -> tuple[str, ...]:
    when = datetime.fromtimestamp(row.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return (
        str(row.seq),
        when,
        _what(row),
        row.tx_id[:12] or "–",
        f"{row.balance_change:+,}" if row.balance_change else "",
        f"{row.balance:,}",
        f"{row.held:,}",
        f"{row.earned:,}" if row.earned else "",
    )

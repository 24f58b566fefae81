"""``relaydesk ledger balance``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from relaydesk.core.commands import ShowLedger
from relaydesk.core.view.ledger import LedgerView
from relaydesk.surfaces.cli.attach import answer, attach_option, find_node, json_option
from relaydesk.surfaces.cli.output import paint, print_json, say, table, tell

_DAY_S: Final = 86_400
# Of earnings: what people look at; `--json` has all that the node lists.
_DAYS_SHOWN: Final = 14


@click.command()
@json_option
@attach_option
def balance(as_json: bool, attach: Path | None) -> None:
    """Accounts, open tickets and earnings of this node, and our credit at other targets, in microunits.

    Vouchers that we handed in and that were refused in the last 30 days are listed with the reason.
    """
    value = find_node(attach).call(ShowLedger()).value
    if as_json:
        print_json(value)
        return
    view = answer(value, LedgerView)
    tell(
        f"Vouchers brought in {view.issued:,}: {view.balance:,} can be spent, {view.held:,} is held, "
        f"{view.earned:,} was earned" + (f", {view.fees:,} are fees." if view.fees else ".")
    )
    _accounts(view)
    _tickets(view)
    _earnings(view)
    _credit(view)


def _accounts(view: LedgerView) -> None:
    rows = [
        (each.address, f"{each.balance:,}", f"{each.held:,}", f"{each.spent:,}", each.note)
        for each in view.accounts
    ]
    _block("Accounts here", ("ACCOUNT", "BALANCE", "HELD", "SPENT", "NOTE"), rows, (4, 0))
    vouchers = [
        (each.id, f"{each.amount:,}", _day(each.expires_at_ms // 1000), each.note) for each in view.vouchers
    ]
    _block("Vouchers not redeemed", ("VOUCHER", "AMOUNT", "EXPIRES", "NOTE"), vouchers, (3,))


def _tickets(view: LedgerView) -> None:
    head = ("TRANSACTION", "MODEL", "STATE", "PRICE", "RECEIPT", "PAYER SAYS")
    for title, tickets in (("Open tickets", view.open_tickets), ("Disputes", view.disputes)):
        rows = [
            (
                each.tx_id,
                each.model,
                each.disputed_by or each.state,
                f"{each.max_price:,}",
                _amount(each.claimed),
                _amount(each.payer_claimed),
            )
            for each in tickets
        ]
        _block(title, head, rows, (1, 0))


def _earnings(view: LedgerView) -> None:
    rows = [
        (_day(each.day * _DAY_S), each.model, f"{each.tickets:,}", f"{each.earned:,}", f"{each.refunded:,}")
        for each in view.earnings[:_DAYS_SHOWN]
    ]
    _block("Earnings", ("DAY", "MODEL", "TICKETS", "EARNED", "PAID BACK"), rows, (1,))


def _credit(view: LedgerView) -> None:
    rows = [
        (
            f"{each.operator}:{each.node}",
            f"{each.balance:,}",
            f"{each.held:,}",
            str(each.open),
            str(each.waiting),
            each.payer,
        )
        for each in view.credit
    ]
    _block("Our credit", ("TARGET", "BALANCE", "HELD", "OPEN", "TO TELL", "WE ARE"), rows, (5, 0))
    refused = [
        (each.id, f"{each.operator}:{each.node}", _day(each.at_ms // 1000), each.why) for each in view.refused
    ]
    _block("Vouchers refused to us", ("VOUCHER", "TARGET", "DAY", "WHY"), refused, (3, 1))


def _block(
    title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]], shrink: tuple[int, ...]
) -> None:
    if not rows:
        return
    say()
    say(paint(title, "bold"))
    for line in table(head, rows, shrink=shrink):
        say(line)


def _amount(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d") if seconds else "never"

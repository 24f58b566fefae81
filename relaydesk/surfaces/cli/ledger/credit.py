"""``relaydesk ledger credit``, ``redeem`` and ``resolve``."""

from __future__ import annotations

from pathlib import Path

import click

from relaydesk.core.access.credit import CREDIT_ALLOWED, credit_text
from relaydesk.core.commands import IssueCredit, RedeemCredit, ResolveDispute
from relaydesk.core.ledger.voucher import MOST_CREDIT
from relaydesk.surfaces.cli.attach import attach_option, find_node, json_option
from relaydesk.surfaces.cli.key.options import Credit, Expiry, day_text
from relaydesk.surfaces.cli.output import note, print_json, say, tell
from relaydesk.surfaces.cli.prompt import confirm, yes_option


@click.command(
    help=f"Make a voucher of AMOUNT. Its code is shown now and never again.\n\nAMOUNT: {CREDIT_ALLOWED}."
)
@click.argument("amount", type=Credit(1, MOST_CREDIT))
@click.option("--expires", type=Expiry(), default="never", help="30d, 12h, 2027-01-31 or never.")
@click.option("--note", "remark", default="", metavar="TEXT", help="Who bought it; shown to you alone.")
@json_option
@attach_option
def credit(amount: int, expires: int, remark: str, as_json: bool, attach: Path | None) -> None:
    command = IssueCredit(amount=amount, expires_ms=expires, note=remark)
    value = find_node(attach).call(command).value
    if as_json:
        print_json(value)
        return
    say(value["code"])
    until = f" until {day_text(expires)}" if expires else ""
    note(f"Whoever has this code has credit of {credit_text(amount)} at this node{until}.")
    note("Their side hands it in with: relaydesk ledger redeem CODE")


@click.command()
@click.argument("code")
@json_option
@attach_option
def redeem(code: str, as_json: bool, attach: Path | None) -> None:
    """Hand in the voucher CODE.

    Its target is asked to credit it at once. Where it cannot be asked now, the voucher goes with the next
    reserve, or by itself within minutes; `ledger balance` says what became of it.
    """
    value = find_node(attach).call(RedeemCredit(code=code)).value
    if as_json:
        print_json(value)
        return
    where = f"{value['operator']}:{value['node']}"
    if value["state"] == "waiting":
        tell(f"The voucher waits for {where}, which could not be asked now: {value['why']}.")
        note(
            "It goes with the next reserve, or by itself within minutes; "
            "`relaydesk ledger balance` says what became of it."
        )
    elif value["before"]:
        tell(f"That voucher was redeemed before: it brought {value['amount']:,} microunits at {where}.")
    else:
        tell(f"{where} credited {value['amount']:,} microunits; {value['balance']:,} can be spent there.")
    note(f"There we are {value['payer']}.")


@click.command(
    help="End the dispute about TRANSACTION: AMOUNT is earned, the rest goes back to the payer.\n\n"
    f"AMOUNT: {CREDIT_ALLOWED}."
)
@click.argument("tx_id", metavar="TRANSACTION")
@click.argument("amount", type=Credit())
@yes_option
@json_option
@attach_option
def resolve(tx_id: str, amount: int, yes: bool, as_json: bool, attach: Path | None) -> None:
    node = find_node(attach)
    confirm(
        f"ledger resolve {tx_id}",
        f"ends the dispute at {amount:,} microunits",
        ResolveDispute.danger,
        yes=yes,
    )
    value = node.call(ResolveDispute(tx_id=tx_id, amount=amount)).value
    if as_json:
        print_json(value)
        return
    tell(f"{value['earned']:,} microunits are earned, {value['refunded']:,} went back.")

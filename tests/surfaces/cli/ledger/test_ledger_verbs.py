"""`relaydesk ledger`: what the node is asked, and what people read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relaydesk.core.codec import to_builtins
from relaydesk.core.commands import (
    Command,
    FetchStatement,
    IssueCredit,
    Outcome,
    RedeemCredit,
    ResolveDispute,
    ShowLedger,
    ShowStatement,
)
from relaydesk.core.ledger.statement import Statement, read_statement
from relaydesk.core.text import safe_text
from relaydesk.core.view.ledger import (
    AccountView,
    CreditView,
    EarningView,
    LedgerView,
    RefusedVoucherView,
    TicketView,
    VoucherView,
)
from tests.support.ledger_rig import ANN, VALUES, LedgerRig, claim_request

TX = "T" * 52


async def made(directory: Path) -> Statement:
    rig = LedgerRig(directory)
    ledger = await rig.start()
    await rig.credit(ledger, ANN, 1000)
    tx_id, terms = await rig.open(ledger, ANN)
    await ledger.receipt(tx_id, VALUES)
    await ledger.settle(claim_request(tx_id, terms.ticket_id, VALUES, ANN))
    found = await ledger.statement(ANN.address)
    await rig.close()
    return found


@pytest.fixture
def account(tmp_path: Path, node: Any) -> Statement:
    """A statement that the node gives two rows at a time."""
    whole = asyncio.run(made(tmp_path))

    async def page(command: Command) -> Outcome:
        assert isinstance(command, ShowStatement)
        rows = whole.rows[command.after : command.after + 2]
        return Outcome(ok=True, value=to_builtins(Statement(whole.statement, rows)))

    node.answers[ShowStatement] = page
    return whole


def test_balance(cli: Any, node: Any) -> None:
    model = safe_text("smollm2")
    view = LedgerView(
        issued=1_000_000,
        balance=900_000,
        held=60_000,
        earned=40_000,
        accounts=(AccountView(ANN.address, 900_000, 60_000, 40_000, 9, safe_text("for ann")),),
        open_tickets=(TicketView(TX, ANN.address, model, "open", 60_000, 0, 0),),
        disputes=(TicketView("D" * 52, ANN.address, model, "frozen", 7, 0, 0, 5, 4, "claims"),),
        earnings=(EarningView(20_000, model, 3, 40_000, 20_000),),
        vouchers=(VoucherView("abcdef01", 5_000, 0, 1_900_000_000_000),),
        credit=(CreditView(77, 2, "P" * 58, 123_456, 1, 2, 1),),
        refused=(RefusedVoucherView("abcdef02", 77, 2, safe_text("it has expired"), 1_900_000_000_000),),
    )
    node.answer(ShowLedger, view)
    done = cli("ledger", "balance")
    assert done.code == 0
    assert "brought in 1,000,000: 900,000 can be spent, 60,000 is held, 40,000 was earned." in done.out
    for line in (
        [ANN.address, "900,000", "60,000", "40,000", "for", "ann"],
        [TX, "smollm2", "open", "60,000", "–", "–"],
        ["D" * 52, "smollm2", "claims", "7", "5", "4"],
        ["2024-10-04", "smollm2", "3", "40,000", "20,000"],
        ["abcdef01", "5,000", "2030-03-17"],
        ["77:2", "123,456", "1", "2", "1", "P" * 58],
        ["abcdef02", "77:2", "2030-03-17", "it", "has", "expired"],
    ):
        assert line in [each.split() for each in done.out.splitlines()]
    assert cli("ledger", "balance", "--json").json["earned"] == 40_000


def test_credit_shows_the_code_alone_on_stdout(cli: Any, node: Any) -> None:
    node.answer(IssueCredit, {"code": "rdv1.1.2.x", "amount": 5, "expires_ms": 0})
    done = cli("ledger", "credit", "5000", "--note", "ann")
    assert (done.code, done.out) == (0, "rdv1.1.2.x\n")
    assert node.seen == [IssueCredit(5000, 0, "ann")]
    assert cli("ledger", "credit", "5000", "--json").json["code"] == "rdv1.1.2.x"
    cli("ledger", "credit", "1", "--expires", "2031-02-03")
    assert node.seen[-1].expires_ms == 1_927_843_200_000
    for wrong in ("0", "-1", "1.5", "9" * 20, "five", "1,000,001USD"):
        assert cli("ledger", "credit", "--", wrong).code == 2
    assert (
        "'1.5' is no amount: give microunits such as 500000 or 5M, or USD"
        in cli("ledger", "credit", "1.5").err
    )
    assert "1,000,001,000,000 microunits is not 1 to" in cli("ledger", "credit", "1000001USD").err


def test_amounts_are_those_of_keys(cli: Any, node: Any) -> None:
    node.answer(IssueCredit, {"code": "rdv1.1.2.x", "amount": 5, "expires_ms": 0})
    for text in ("500000", "500,000", "500k", "0.50USD", "0.5 usd"):
        done = cli("ledger", "credit", text)
        assert node.seen[-1].amount == 500_000
        assert "credit of 500,000 (0.5 USD) at this node." in done.err
    node.answer(ResolveDispute, {"tx_id": TX, "earned": 3, "refunded": 4})
    cli("ledger", "resolve", TX, "0.5USD", "--yes")
    assert node.seen[-1] == ResolveDispute(TX, 500_000)
    for verb in ("credit", "resolve"):
        assert "microunits such as 500000 or 5M, or USD" in " ".join(
            cli("ledger", verb, "--help").out.split()
        )


def test_redeem(cli: Any, node: Any) -> None:
    said = {"operator": 1, "node": 2, "payer": ANN.address, "state": "redeemed", "amount": 5000}
    said |= {"balance": 7000, "before": False, "why": ""}
    node.answer(RedeemCredit, said)
    done = cli("ledger", "redeem", "rdv1.1.2.x")
    assert node.seen == [RedeemCredit("rdv1.1.2.x")]
    assert done.out == "1:2 credited 5,000 microunits; 7,000 can be spent there.\n"
    assert f"There we are {ANN.address}." in done.err
    node.answer(RedeemCredit, said | {"before": True})
    assert "was redeemed before: it brought 5,000" in cli("ledger", "redeem", "rdv1.1.2.x").out
    node.answer(RedeemCredit, said | {"state": "waiting", "amount": 0, "why": "no relay"})
    done = cli("ledger", "redeem", "rdv1.1.2.x")
    assert done.out == "The voucher waits for 1:2, which could not be asked now: no relay.\n"
    assert "with the next reserve, or by itself within minutes" in done.err


def test_resolve_only_when_confirmed(cli: Any, node: Any) -> None:
    node.answer(ResolveDispute, {"tx_id": TX, "earned": 3, "refunded": 4})
    assert (cli("ledger", "resolve", TX, "3").code, node.seen) == (4, [])
    done = cli("ledger", "resolve", TX, "3", "--yes")
    assert node.seen == [ResolveDispute(TX, 3)]
    assert done.out == "3 microunits are earned, 4 went back.\n"


def test_our_statement_at_another_node(cli: Any, node: Any, account: Statement) -> None:
    said = {"disagreement": ""}

    async def page(command: Command) -> Outcome:
        assert isinstance(command, FetchStatement)
        rows = account.rows[command.after : command.after + 2]
        return Outcome(ok=True, value=to_builtins(Statement(account.statement, rows)) | said)

    node.answers[FetchStatement] = page
    done = cli("ledger", "statement", "--at", "7:1", "--json")
    assert done.code == 0
    assert node.seen == [FetchStatement("7:1", after) for after in (0, 2, 4)]
    assert read_statement(done.out) == account
    said["disagreement"] = "row 2: we have not opened it"
    done = cli("ledger", "statement", "--at", "7:1")
    assert done.code == 1
    assert "row 2: we have not opened it" in done.err
    assert cli("ledger", "statement", "ABC", "--at", "7:1").code == 2


def test_statement(cli: Any, node: Any, account: Statement) -> None:
    done = cli("ledger", "statement", ANN.address[:6])
    assert done.code == 0
    assert node.seen[0] == ShowStatement(ANN.address[:6])
    assert [each.after for each in node.seen] == [0, 2, 4]
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[2][0] == "1"
    assert rows[2][3:] == ["redeem", "–", "+1,000", "1,000", "0"]
    assert [row[3:5] for row in rows[4:7]] == [
        ["receipt", "(node)"],
        ["claim", "(payer)"],
        ["claim", "(node)"],
    ]
    assert rows[7][3] == "settle"
    assert rows[7][5:] == ["+60", "960", "0", "40"]
    assert "960 microunits can be spent, 0 is held." in done.out
    shown = msgspec.convert(cli("ledger", "statement", "--json").json, Statement)
    assert shown == account


def test_statements_are_compared(cli: Any, node: Any, account: Statement, tmp_path: Path) -> None:
    saved = tmp_path / "ours.json"
    saved.write_text(cli("ledger", "statement", "--json").out)
    table = tmp_path / "ours.csv"
    table.write_text(cli("ledger", "statement", "--csv").out)
    for file in (saved, table):
        same = cli("ledger", "statement", "--compare", file)
        assert (same.code, same.out) == (0, "All 6 rows are equal.\n")
    table.write_text(table.read_text().replace(",settle,", ",lapse,"))
    other = cli("ledger", "statement", "--compare", table)
    assert other.code == 1
    assert (
        "The first difference is in row 6: kind is settle in the first and lapse in the second." in other.out
    )
    assert "The second does not hold by itself: row 6" in other.out
    assert "the file was changed after the node signed it: fetch the statement anew" in other.err
    shown = cli("ledger", "statement", "--with", table)
    assert shown.code == 1
    assert "the statement does not hold: row 6" in shown.err
    assert "fetch the statement anew" in shown.err
    assert "doctor" not in shown.err
    found = cli("ledger", "statement", "--with", saved, "--compare", table, "--json")
    assert (found.code, found.json["equal"], found.json["difference"]["field"]) == (1, False, "kind")
    shorter = Statement(account.statement, account.rows[:4])
    saved.write_bytes(msgspec.json.encode(shorter))
    cut = cli("ledger", "statement", "--compare", saved)
    assert cut.code == 1
    assert "4 rows are equal; the first goes on for 2 more." in cut.out
    assert "its head is not about these rows" in cut.out


def test_what_is_no_statement(cli: Any, node: Any, account: Statement, tmp_path: Path) -> None:
    file = tmp_path / "x"
    for content in (b"{}", b"\xff\xfe", b"# relaydesk statement {}\n"):
        file.write_bytes(content)
        refused = cli("ledger", "statement", "--compare", file)
        assert refused.code == 2
        assert "cannot be read" in refused.err
    assert cli("ledger", "statement", "--compare", tmp_path / "none").code == 2

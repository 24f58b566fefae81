"""What can be done with credit, and which list of the books is shown."""

from __future__ import annotations

from typing import Final

from relaydesk.core.commands import IssueCredit, RedeemCredit, ResolveDispute
from relaydesk.surfaces.console.action import Action

_LISTS: Final = (
    ("accounts", "who has credit at this node"),
    ("tickets", "open tickets: what is held for them, and until when"),
    ("disputes", "tickets about which the two sides differ"),
    ("earnings", "what was earned by day and model"),
    ("vouchers", "vouchers that nobody has redeemed yet"),
    ("credit", "this node's credit at others"),
)
ACTIONS: Final = (
    Action(
        "ledger.next",
        "v",
        "Ledger: next list",
        "next list",
        "show the next list of the books: accounts, tickets, disputes, earnings, vouchers, credit",
        "ledger",
        cli="relaydesk ledger balance",
        footer=59,
    ),
    Action(
        "ledger.previous",
        "V",
        "Ledger: previous list",
        "previous list",
        "show the list of the books before this one",
        "ledger",
        cli="relaydesk ledger balance",
    ),
    *(
        Action(f"ledger.{name}", "", f"Ledger: {name}", name, f"show {what}", "ledger")
        for name, what in _LISTS
    ),
    Action(
        "ledger.issue",
        "a",
        "Credit: issue",
        "issue credit",
        "make a voucher for credit at this node; its code is shown once",
        "ledger",
        cli="relaydesk ledger credit AMOUNT OPTIONS",
        command=IssueCredit,
        footer=58,
    ),
    Action(
        "ledger.redeem",
        "r",
        "Credit: redeem",
        "redeem",
        "hand in a voucher of another node: it credits us at once, or when it is next asked",
        "ledger",
        cli="relaydesk ledger redeem ANSWER",
        command=RedeemCredit,
        ask="code",
        footer=57,
    ),
    Action(
        "ledger.resolve",
        "d",
        "Dispute: resolve",
        "resolve",
        "end the selected dispute: what is earned of it, the rest goes back",
        "ledger",
        cli="relaydesk ledger resolve NAME ANSWER",
        command=ResolveDispute,
        ask="earned",
        footer=56,
    ),
)

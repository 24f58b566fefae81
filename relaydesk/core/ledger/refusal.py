"""What the ledger says no to, and why."""

from __future__ import annotations

from typing import Final

# What each code means to whoever asked. None of them changes anything in the ledger.
REFUSALS: Final[dict[str, str]] = {
    "bad_record": "a field is missing or out of range",
    "bad_signature": "the signature is not that of whom the record binds",
    "terms_differ": "the open record is not about this ticket at this price",
    "unsigned": "a price above 0 needs an open record of the payer",
    "expired": "the ticket's deadline is over, or too far away",
    "replayed": "the transaction is known already",
    "ticket_opened": "the ticket is open already under another transaction",
    "not_enough_credit": "the account has less than the price",
    "unknown_ticket": "no ticket was opened by that transaction",
    "other_ticket": "the transaction opened another ticket",
    "over_price": "the amount and its fee are more than the price that was held",
    "claim_differs": "that side has claimed other values already",
    "frozen": "the ticket is frozen: the two sides do not agree",
    "ended": "the ticket has ended",
    "too_early": "the deadline is not over yet",
    "not_frozen": "there is no dispute about the ticket",
    "bad_voucher": "there is no such voucher",
    "voucher_expired": "the voucher has expired",
    "voucher_used": "the voucher was redeemed for another account",
    "account_full": "an account cannot hold that much",
}


def voucher_refusal(code: str) -> str:
    """Why a target refused a voucher, as part of a sentence; ``code`` is its word, and may be any."""
    if code == "code_lost":
        return "its code is not among this node's secrets any more"
    return REFUSALS.get(code, "it gave no reason that is known here")


class LedgerRefusal(Exception):
    """The ledger's no. ``code`` is one of `REFUSALS`; nothing was changed."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.message = REFUSALS[code]
        super().__init__(f"{code}: {self.message}")

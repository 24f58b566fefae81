"""What fronts see of the ledger: credit here and elsewhere, open tickets, earnings, disputes.

Amounts are integer microunits. A payer is known by its address alone; ``note`` is what the operator wrote on
the vouchers that were redeemed for it.
"""

from __future__ import annotations

import msgspec

from relaydesk.core.text import SafeText


class AccountView(msgspec.Struct, frozen=True):
    """One payer's account at this node."""

    address: str
    balance: int
    held: int
    spent: int = 0
    rows: int = 0
    note: SafeText = SafeText("")


class TicketView(msgspec.Struct, frozen=True):
    """A ticket that has not ended. ``claimed`` is what the node's receipt says, None without one.

    ``disputed_by``: ``protest``, ``claims`` (they differ), or empty.
    """

    tx_id: str
    payer: str
    model: SafeText
    state: str
    max_price: int
    opened_at_ms: int
    deadline_at_ms: int
    claimed: int | None = None
    payer_claimed: int | None = None
    disputed_by: str = ""


class EarningView(msgspec.Struct, frozen=True):
    """What a model earned on a day (days since 1970, UTC), over the tickets that ended on it."""

    day: int
    model: SafeText
    tickets: int
    earned: int
    refunded: int = 0


class VoucherView(msgspec.Struct, frozen=True):
    """A voucher that nobody has redeemed yet; ``id`` is the beginning of its hash."""

    id: str
    amount: int
    issued_at_ms: int
    expires_at_ms: int = 0
    note: SafeText = SafeText("")


class CreditView(msgspec.Struct, frozen=True):
    """Our credit at a target, as it last told us; what is ``waiting`` goes with the next reserve."""

    operator: int
    node: int
    payer: str
    balance: int = 0
    held: int = 0
    open: int = 0
    waiting: int = 0
    told_at_ms: int = 0


class RefusedVoucherView(msgspec.Struct, frozen=True):
    """A voucher that we handed in and that its target refused; ``id`` is the beginning of its hash."""

    id: str
    operator: int
    node: int
    why: SafeText
    at_ms: int


class LedgerView(msgspec.Struct, frozen=True):
    """The books of this node: as a target (accounts, tickets, earnings) and as a payer (credit,
    and what was refused of vouchers we handed in).

    Sums are of everything, lists of the newest. ``issued`` is what vouchers brought in:
    ``issued == balance + held + earned + fees``.
    """

    issued: int = 0
    balance: int = 0
    held: int = 0
    earned: int = 0
    fees: int = 0
    accounts: tuple[AccountView, ...] = ()
    open_tickets: tuple[TicketView, ...] = ()
    disputes: tuple[TicketView, ...] = ()
    earnings: tuple[EarningView, ...] = ()
    vouchers: tuple[VoucherView, ...] = ()
    credit: tuple[CreditView, ...] = ()
    refused: tuple[RefusedVoucherView, ...] = ()

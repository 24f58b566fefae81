"""What fronts see of the target's books."""

from __future__ import annotations

from relaydesk.core.ledger.ticket import SignedClaim, Ticket
from relaydesk.core.text import safe_text
from relaydesk.core.view.ledger import AccountView, EarningView, LedgerView, TicketView, VoucherView
from relaydesk.store.ledger import Books

# Sums are over all of them.
_SHOWN = 200


def view_of(books: Books) -> LedgerView:
    """Sums, accounts, open tickets, disputes, earnings and vouchers."""
    totals = books.totals()
    live = sorted(books.live_tickets(), key=lambda ticket: -ticket.opened_ms)
    return LedgerView(
        issued=totals.issued,
        balance=totals.balance,
        held=totals.held,
        earned=totals.earned,
        fees=totals.fees,
        accounts=tuple(
            AccountView(line.address, line.balance, line.held, line.spent, line.rows, safe_text(line.note))
            for line in books.accounts()
        ),
        open_tickets=tuple(ticket_view(each) for each in live if each.state != "frozen")[:_SHOWN],
        disputes=tuple(ticket_view(each) for each in live if each.state == "frozen")[:_SHOWN],
        earnings=tuple(
            EarningView(line.day, safe_text(line.model), line.tickets, line.earned, line.refunded)
            for line in books.earnings()
        ),
        vouchers=tuple(
            VoucherView(line.voucher[:8], line.amount, line.issued_ms, line.expires_ms, safe_text(line.note))
            for line in books.open_vouchers()
        ),
    )


def ticket_view(ticket: Ticket) -> TicketView:
    """One ticket as fronts see it."""
    disputed = "" if ticket.state != "frozen" else "protest" if ticket.protest is not None else "claims"
    return TicketView(
        tx_id=ticket.tx_id,
        payer=ticket.payer,
        model=safe_text(ticket.model),
        state=ticket.state,
        max_price=ticket.max_price,
        opened_at_ms=ticket.opened_ms,
        deadline_at_ms=ticket.deadline_s * 1000,
        claimed=_amount(ticket.node_claim or ticket.receipt),
        payer_claimed=_amount(ticket.payer_claim),
        disputed_by=disputed,
    )


def _amount(signed: SignedClaim | None) -> int | None:
    return None if signed is None else signed.claim.values.amount

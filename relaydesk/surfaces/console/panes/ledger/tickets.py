"""One ticket as a card: who has said what, and what becomes of it."""

from __future__ import annotations

from typing import Final

from relaydesk.core.view.ledger import TicketView
from relaydesk.surfaces.console.panes.keys.present import age
from relaydesk.surfaces.console.panes.ledger.form import most_earned
from relaydesk.surfaces.console.panes.ledger.present import ticket_state
from relaydesk.surfaces.console.panes.ledger.words import UNIT, amount, left
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, marked, paragraph
from relaydesk.surfaces.console.states import clock_time
from relaydesk.surfaces.console.widgets.spans import Line, Span

_ROOM: Final = 12


def lines(ticket: TicketView, now_ms: int, width: int) -> tuple[Line, ...]:
    """A ticket that has not ended; a disputed one with what to do."""
    state = ticket_state(ticket)
    frozen = ticket.state == "frozen"
    time_left = f"{left(ticket.deadline_at_ms, now_ms)} left"
    tail = f"{amount(ticket.max_price)} stays held" if frozen else time_left
    made: list[Line] = [(Span(state.text, state.tone), Span(f"  {tail}", "strong")), NOTHING]
    made += _disputed(ticket, width) if frozen else paragraph(next_step(ticket), width)
    made += [NOTHING, *_sides(ticket, width), NOTHING]
    if frozen:
        made += [*_to_do(ticket, width), NOTHING]
    for label, text in (
        ("model", ticket.model),
        ("price", f"{amount(ticket.max_price)} {UNIT} at most"),
        ("opened", f"{_ago(ticket, now_ms)}, at {clock_time(ticket.opened_at_ms)}"),
        ("deadline", clock_time(ticket.deadline_at_ms) if not frozen else ""),
        ("payer", ticket.payer or "nobody signed for it: it is free"),
        ("transaction", ticket.tx_id),
    ):
        made += fact(label, text, width, room=_ROOM)
    command = f"relaydesk ledger statement {ticket.payer}"
    if frozen:
        command = f"relaydesk ledger resolve {ticket.tx_id} {most_earned(ticket)}"
    return (
        (*made, NOTHING, *fact("shell", command, width, "dim", room=_ROOM)) if ticket.payer else tuple(made)
    )


def next_step(ticket: TicketView) -> str:
    """How an open ticket goes on, as sentences."""
    if ticket.state == "open" and ticket.claimed is None:
        return (
            "Its answer is under way, or nobody has said what it came to. "
            "At the deadline its whole price goes back to the payer."
        )
    if ticket.claimed is None:
        return (
            "The payer has said what it came to, and this node has no receipt for it. "
            "A payer's word alone pays nobody: at the deadline its whole price goes back."
        )
    if ticket.state == "open":
        return (
            "This node's receipt is written down. It is settled once the payer agrees, "
            "and lapses at the deadline otherwise: then the receipt's amount is earned."
        )
    return (
        "This node has claimed what its receipt says. It is settled once the payer agrees; "
        "where nobody answers, the deadline pays the claim."
    )


def _disputed(ticket: TicketView, width: int) -> tuple[Line, ...]:
    if ticket.disputed_by == "protest":
        said = "The payer protests: the answer that it got has another hash than the receipt names."
    elif ticket.claimed == ticket.payer_claimed:
        said = "Both sides name one amount, but another value of their claims differs."
    else:
        said = "The payer claims another amount than this node's receipt."
    return marked("warn", said, width)


def _sides(ticket: TicketView, width: int) -> tuple[Line, ...]:
    """Who says what, one below the other."""
    ours = amount(ticket.claimed) if ticket.claimed is not None else "no receipt"
    theirs = amount(ticket.payer_claimed) if ticket.payer_claimed is not None else "nothing yet"
    if ticket.disputed_by == "protest" and ticket.payer_claimed is None:
        theirs = "a protest"
    differ = ticket.state == "frozen" and ours != theirs
    return (
        (Span("Who says what", "strong"), Span(f"  {UNIT}", "dim")),
        *fact("this node", ours, width, room=_ROOM),
        *fact("the payer", theirs, width, "warn" if differ else "", room=_ROOM),
    )


def _to_do(ticket: TicketView, width: int) -> tuple[Line, ...]:
    most = most_earned(ticket)
    if most:
        said = (
            f"Held it serves neither side. d ends it: choose what is earned, {amount(most)} at most, and the "
            "rest goes back. That is final. The statement has both signed records: compare them first."
        )
    else:
        said = "Without a receipt nothing can be earned: d ends it at 0, and all goes back. That is final."
    return ((Span("What to do", "strong"),), *paragraph(said, width))


def _ago(ticket: TicketView, now_ms: int) -> str:
    said = age(ticket.opened_at_ms, now_ms)
    return said if said in ("–", "just now") else f"{said} ago"

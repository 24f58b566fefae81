"""An account, a voucher, or our credit at a target, as a card."""

from __future__ import annotations

from typing import Final

from relaydesk.core.view.amounts import plural
from relaydesk.core.view.ledger import AccountView, CreditView, LedgerView, VoucherView
from relaydesk.surfaces.console.panes.keys.present import age, day_time, until
from relaydesk.surfaces.console.panes.ledger.present import credit_key, ticket_state
from relaydesk.surfaces.console.panes.ledger.words import UNIT, amount, left
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, marked, paragraph
from relaydesk.surfaces.console.widgets.bar import Part, legend, stacked_bar
from relaydesk.surfaces.console.widgets.cells import fit
from relaydesk.surfaces.console.widgets.cells import width as cells
from relaydesk.surfaces.console.widgets.spans import Line, Span

ROOM: Final = 12
_TICKETS: Final = 8


def account(
    each: AccountView, ledger: LedgerView, now_ms: int, width: int, *, ascii: bool = False
) -> tuple[Line, ...]:
    """What a payer brought in, where it went, and what is open."""
    made: list[Line] = [*paragraph(each.address, width, "strong")]
    if each.note:
        made += paragraph(each.note, width, "dim")
    parts = (
        Part("can be spent", each.balance, "part-1"),
        Part("held", each.held, "part-2"),
        Part("spent", each.spent, "part-3"),
    )
    whole = each.balance + each.held + each.spent
    made += [NOTHING, stacked_bar(parts, whole, width, ascii=ascii), NOTHING]
    made += legend(parts, width, lambda value: amount(int(value)), ascii=ascii)
    made += [NOTHING, *_open_tickets(each, ledger, now_ms, width), NOTHING]
    made += fact("unit", UNIT, width, room=ROOM)
    made += fact("book", f"{each.rows:,} rows, signed and chained", width, room=ROOM)
    return (*made, *fact("shell", f"relaydesk ledger statement {each.address}", width, "dim", room=ROOM))


def _open_tickets(each: AccountView, ledger: LedgerView, now_ms: int, width: int) -> tuple[Line, ...]:
    found = [one for one in (*ledger.disputes, *ledger.open_tickets) if one.payer == each.address]
    if not found:
        return marked("dim", "No ticket of it is open.", width)
    made: list[Line] = [(Span(plural(len(found), "open ticket"), "strong"),)]
    for one in found[:_TICKETS]:
        state = ticket_state(one)
        until_end = "held" if one.state == "frozen" else left(one.deadline_at_ms, now_ms)
        tail = f"  {fit(until_end, 5, 'right')}"
        price = f"  {amount(one.max_price)}"
        room = max(1, width - 12 - cells(price) - cells(tail))
        made.append(
            (
                Span(fit(state.text, 12), state.tone),
                Span(fit(one.model, room)),
                Span(price, "strong"),
                Span(tail, "dim"),
            )
        )
    if len(found) > _TICKETS:
        made += paragraph(f"and {len(found) - _TICKETS} more", width, "dim")
    return tuple(made)


def voucher(each: VoucherView, now_ms: int, width: int) -> tuple[Line, ...]:
    """Credit that nobody has taken yet."""
    expired = 0 < each.expires_at_ms <= now_ms
    head = f"{amount(each.amount)} {UNIT}"
    made: list[Line] = [(Span(head, "strong"),)]
    if expired:
        made += marked("error", "Expired: nobody can redeem it any more.", width)
    else:
        said = "Nobody has redeemed it yet; until somebody does it is in none of the sums."
        made += marked("info", said, width)
    ends = f"in {until(each.expires_at_ms, now_ms)}, {day_time(each.expires_at_ms)}"
    made.append(NOTHING)
    for label, text in (
        ("note", each.note),
        ("issued", _ago(each.issued_at_ms, now_ms)),
        ("expires", "never" if not each.expires_at_ms else day_time(each.expires_at_ms) if expired else ends),
        ("voucher", f"{each.id}, the beginning of its code's hash"),
    ):
        made += fact(label, text, width, room=ROOM)
    lost = "The code itself is kept nowhere: it was shown once. A lost one can only be made anew."
    return (*made, NOTHING, *paragraph(lost, width, "dim"))


def credit(each: CreditView, now_ms: int, width: int, *, ascii: bool = False) -> tuple[Line, ...]:
    """What this node may spend at a target, as that target last told."""
    parts = (Part("can be spent", each.balance, "part-1"), Part("held", each.held, "part-2"))
    made: list[Line] = [*paragraph(credit_key(each), width, "strong")]
    if not each.told_at_ms:
        made += marked("info", "It has told nothing yet: it does so when it is next asked.", width)
    else:
        whole = each.balance + each.held
        made += [NOTHING, stacked_bar(parts, whole, width, ascii=ascii), NOTHING]
        made += legend(parts, width, lambda value: amount(int(value)), ascii=ascii)
    made.append(NOTHING)
    if each.waiting:
        what = plural(each.waiting, "thing")
        said = f"{what} to tell: vouchers and claims go with the next reserve there."
        made += [*marked("info", said, width), NOTHING]
    for label, text in (
        ("open", plural(each.open, "ticket") if each.open else "no ticket"),
        ("told us", _ago(each.told_at_ms, now_ms) if each.told_at_ms else "never yet"),
        ("unit", UNIT),
        ("we are", each.payer),
    ):
        made += fact(label, text, width, room=ROOM)
    lost = "This key is used there and nowhere else. Lost keys are lost credit: they are among the secrets."
    return (*made, NOTHING, *paragraph(lost, width, "dim"))


def _ago(at_ms: int, now_ms: int) -> str:
    said = age(at_ms, now_ms)
    return said if said in ("–", "just now") else f"{said} ago, {day_time(at_ms)}"

"""The sums of the books in a line or three, and the lists there are as tabs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from relaydesk.core.view.amounts import plural
from relaydesk.core.view.ledger import LedgerView
from relaydesk.surfaces.console.panes.ledger.present import BOOKS, Book
from relaydesk.surfaces.console.panes.ledger.words import UNIT, amount
from relaydesk.surfaces.console.panes.prose import marked
from relaydesk.surfaces.console.pieces import Group, Piece, cut, fit, mark
from relaydesk.surfaces.console.widgets.bar import Part, fill, stacked_bar
from relaydesk.surfaces.console.widgets.spans import Line, Span

# Lists of this node as a target come first, those of it as a payer after `ELSEWHERE`.
_ELSEWHERE: Final = "credit"


def lines(ledger: LedgerView, width: int, most: int, *, ascii: bool = False) -> tuple[Line, ...]:
    """At most ``most`` lines: what vouchers brought in and where it is now, as a bar too; then elsewhere."""
    parts = _parts(ledger)
    if sum(int(part.value) for part in parts) != ledger.issued:
        said = "The books do not add up: `relaydesk doctor` checks them; stop the node before it books more."
        return marked("error", said, width)[:most]
    found: list[Line] = []
    if ledger.issued or not ledger.credit:
        found.append(_line(_sums(ledger, parts, ascii=ascii), width))
        if ledger.issued and most > 1:
            found.append(stacked_bar(parts, ledger.issued, width, ascii=ascii))
    if ledger.credit and len(found) < most:
        found.append(_line(_elsewhere(ledger), width))
    return tuple(found[:most])


def _parts(ledger: LedgerView) -> tuple[Part, ...]:
    return (
        Part("can be spent", ledger.balance, "part-1"),
        Part("held", ledger.held, "part-2"),
        Part("earned", ledger.earned, "part-3"),
        Part("fees", ledger.fees, "part-4"),
    )


def _sums(ledger: LedgerView, parts: Sequence[Part], *, ascii: bool) -> list[Group]:
    worth = {"can be spent": 80, "held": 70, "earned": 90, "fees": 40}
    groups = [_pair("brought in", amount(ledger.issued), 60)]
    for at, part in enumerate(parts):
        if part.label == "fees" and not part.value:
            continue
        legend = Piece(f"{fill(at, ascii=ascii)} ", part.tone)
        groups.append(
            Group(
                (legend, Piece(f"{part.label} ", "dim"), Piece(amount(int(part.value)), "strong")),
                worth[part.label],
            )
        )
    return [*groups, Group((Piece(UNIT, "dim"),), 85)]


def _elsewhere(ledger: LedgerView) -> list[Group]:
    credit = ledger.credit
    waiting = sum(each.waiting for each in credit)
    held = sum(each.held for each in credit)
    return [
        Group(
            (
                Piece("elsewhere ", "dim"),
                Piece(amount(sum(each.balance for each in credit)), "strong"),
                Piece(f" to spend at {plural(len(credit), 'target')}", "dim"),
            ),
            90,
        ),
        *([_pair("held", amount(held), 70)] if held else []),
        *([Group((mark("info", f"{waiting} to tell"),), 60)] if waiting else []),
    ]


def tabs(ledger: LedgerView, current: str, width: int) -> tuple[Piece, ...]:
    """The lists with how many rows each has; with less room without, at last the current one alone."""
    for numbers, sides in ((True, True), (True, False), (False, False)):
        made: list[Piece] = []
        for book in BOOKS:
            if sides and book.id in (BOOKS[0].id, _ELSEWHERE):
                made.append(Piece("  elsewhere " if book.id == _ELSEWHERE else "here ", "faint"))
            made.append(_tab(ledger, book, current, numbers=numbers))
        if sum(piece.width for piece in made) <= width:
            return tuple(made)
    return cut(made, width)


def _tab(ledger: LedgerView, book: Book, current: str, *, numbers: bool) -> Piece:
    count = book.count(ledger)
    bad = book.id == "disputes" and count
    text = f"{'▲ ' if bad and numbers else ''}{book.title}{f' {count}' if numbers and count else ''}"
    tone = "pill" if book.id == current else "warn" if bad else "dim"
    return Piece(f" {text} ", tone, f"app.run('ledger.{book.id}')")


def _pair(name: str, value: str, worth: int) -> Group:
    return Group((Piece(f"{name} ", "dim"), Piece(value)), worth)


def _line(groups: Sequence[Group], width: int) -> Line:
    return tuple(Span(piece.text, piece.tone) for piece in fit(groups, width))

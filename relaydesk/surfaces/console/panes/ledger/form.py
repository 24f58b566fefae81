"""What is asked before credit is issued or a dispute ended, as texts, numbers and options."""

from __future__ import annotations

import re
from typing import Any, Final

from relaydesk.config.expiry import ALLOWED, parse_expiry
from relaydesk.core.access.credit import CREDIT_ALLOWED, parse_credit
from relaydesk.core.errors import LocalError
from relaydesk.core.ledger.voucher import MOST_CREDIT, parse_code
from relaydesk.core.view.ledger import TicketView
from relaydesk.surfaces.console.ask import Field
from relaydesk.surfaces.console.panes.ledger.words import UNIT, amount

ISSUE: Final = (
    Field("amount", "5000000, 5M or 5USD", needed=True),
    Field("expires", "never"),
    Field("note", "who bought it; shown to you alone"),
)
NOTE: Final = f"Whoever has the code has the credit. amount: {CREDIT_ALLOWED}. expires: {ALLOWED}."
CODE: Final = Field("code", "rdv2.…", needed=True)


def resolve_fields(ticket: TicketView | None) -> tuple[Field, ...]:
    """What is earned of a dispute: the receipt's amount to begin with."""
    most = (ticket.claimed if ticket is not None else None) or 0
    return (Field("earned", f"0 to {most}", str(most), needed=True),)


def most_earned(ticket: TicketView) -> int:
    """What a dispute can be ended at: the amount of the receipt, 0 without one."""
    return ticket.claimed or 0


def parse_amount(label: str, text: str, least: int, most: int) -> int:
    """Microunits, read as `parse_credit` does. Raises `LocalError` ``invalid_request`` naming the field."""
    try:
        value = parse_credit(text)
    except ValueError:
        raise LocalError(
            "invalid_request", f"{label}: {text[:40]!r} is no amount", f"write {CREDIT_ALLOWED}"
        ) from None
    if not least <= value <= most:
        raise LocalError(
            "invalid_request",
            f"{label}: {amount(value)} {UNIT} is not {amount(least)} to {amount(most)}",
            "write another amount",
        )
    return value


def issued(answers: tuple[str, ...], now_ms: int) -> tuple[int, int, str]:
    """Amount, expiry in wall-clock milliseconds (0 for never) and note of the answers to `ISSUE`."""
    value, expires, note = answers
    try:
        ends = parse_expiry(expires or "never", now_ms)
    except ValueError:
        raise LocalError(
            "invalid_request", f"expires: {expires[:40]!r} is no time", f"write {ALLOWED}"
        ) from None
    return parse_amount("amount", value, 1, MOST_CREDIT), ends, note


def issue_line(answers: tuple[str, ...]) -> str:
    """The same as a command line; what cannot be read yet stands there as it is typed."""
    value, expires, note = answers if answers else ("", "", "")
    options = (f" --expires {expires}" if expires else "") + (f" --note {_quoted(note)}" if note else "")
    return f"relaydesk ledger credit {shown(value) or 'AMOUNT'}{options}"


def shown(text: str) -> str:
    """An amount in digits alone, as the command line takes it."""
    try:
        return str(parse_credit(text))
    except ValueError:
        return text


def code(text: str) -> str:
    """A voucher's code. Raises `LocalError`; what was typed is not repeated, it may be a secret."""
    try:
        return parse_code(text).text
    except ValueError as error:
        raise LocalError(
            "invalid_request", str(error), "paste the whole line that starts with rdv2."
        ) from None


def handed_in(where: str, value: dict[str, Any]) -> str:
    """What became of a voucher that was handed in: credited, credited before, or waiting."""
    if value.get("state") == "redeemed" and isinstance(value.get("amount"), int):
        if value.get("before"):
            return f"That voucher was redeemed before: it brought {amount(value['amount'])} at {where}"
        return f"{where} credited {amount(value['amount'])} {UNIT}"
    return f"The voucher waits for {where}, which could not be asked now"


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w.@-]+", text) else "'" + text.replace("'", "'\\''") + "'"

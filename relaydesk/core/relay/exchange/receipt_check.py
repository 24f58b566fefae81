"""What a receipt comes to for who pays: agree, protest, dispute, or nothing that could be said."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from relaydesk.core.ledger.records import MOST, Values
from relaydesk.core.relay.price.charge import base_max, charge
from relaydesk.core.relay.records.receipt import Receipt, check_receipt, receipt_digest
from relaydesk.core.relay.records.ticket import USAGE_TOKENS, Ticket

Step = Literal["agree", "protest", "dispute", "nothing"]
_TOKENS: Final = (0, USAGE_TOKENS)


class ReceiptVerdict(NamedTuple):
    """``wrong`` names the rule that the receipt breaks, empty where it holds.

    ``values`` are what we claim: with ``agree`` the receipt's own, with ``dispute`` what it should have said,
    which leaves the ticket to people (wire §4.9). With ``protest`` the hash of what came is told instead.
    """

    step: Step
    wrong: str = ""
    values: Values | None = None


def judge_receipt(
    receipt: Receipt, ticket: Ticket, public: bytes, body_hash: str, *, failed: bool
) -> ReceiptVerdict:
    """Hold a receipt against its ticket and what was received (wire §4.8). Never raises.

    ``public`` is the key that signed the ticket. ``failed``: the answer was an error, which costs nothing.
    Beyond the wire's own checks an amount must not be more than its counts come to.
    """
    wrong = check_receipt(receipt, ticket, public, body_hash)
    if wrong in ("signature", "ticket"):
        return ReceiptVerdict("nothing", wrong)
    if wrong == "body_hash":
        return ReceiptVerdict("protest", wrong)
    values = _values(receipt)
    if values is None:
        return ReceiptVerdict("nothing", "range")
    if wrong == "cached":
        return ReceiptVerdict("nothing", wrong)
    due = 0 if failed else _due(receipt, ticket)
    if receipt.amount_charged > due:
        return ReceiptVerdict("dispute", wrong or "amount", _values(receipt, due))
    return ReceiptVerdict("agree", "", values)


def _due(receipt: Receipt, ticket: Ticket) -> int:
    """The most that the receipt's counts come to."""
    most = base_max(
        ticket.input_count,
        ticket.max_output_count,
        ticket.input_rate,
        ticket.output_rate,
        min_price=ticket.min_price,
    )
    types = (receipt.input_usage_type, receipt.output_usage_type)
    if receipt.aux_output_count or any(kind not in _TOKENS for kind in types):
        # Priced by more than tokens: only the ticket's own most is known.
        return ticket.max_price
    return charge(
        receipt.actual_input_count,
        receipt.actual_output_count,
        cached=receipt.cached_input_count,
        input_rate=ticket.input_rate,
        output_rate=ticket.output_rate,
        cache_read_rate=ticket.cache_read_rate,
        min_price=ticket.min_price,
        base_max=most,
    )


def _values(receipt: Receipt, amount: int | None = None) -> Values | None:
    values = Values(
        receipt.amount_charged if amount is None else amount,
        receipt_digest(receipt).hex(),
        receipt.ttft_ms,
        receipt.decode_ms,
        receipt.actual_input_count,
        receipt.actual_output_count,
        receipt.input_usage_type,
        receipt.output_usage_type,
        receipt.aux_output_usage_type,
    )
    counts = (values.ttft_ms, values.decode_ms, values.input_count, values.output_count)
    return None if any(count > MOST for count in counts) else values

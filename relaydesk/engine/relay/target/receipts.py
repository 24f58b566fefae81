"""Receipts: what an answer came to, signed, and in the ledger before anybody sees it (wire §4.8, §4.9)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from relaydesk.core.errors import EnvError
from relaydesk.core.ledger.port import Ledger
from relaydesk.core.ledger.records import Values
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.relay.price.charge import charge
from relaydesk.core.relay.records.receipt import Receipt, receipt_digest, sign_receipt
from relaydesk.core.relay.records.ticket import USAGE_TOKENS, Ticket
from relaydesk.engine.relay.target.terms import base_of

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Measured:
    """What the engine counted, in tokens, ``cached`` of the input's; times in milliseconds."""

    input: int = 0
    output: int = 0
    cached: int = 0
    ttft_ms: int = 0
    decode_ms: int = 0


def receipt_of(ticket: Ticket, measured: Measured, body_hash: str, seed: bytes) -> Receipt:
    """The receipt, signed with the node signing key of ``seed``."""
    cached = min(measured.cached, measured.input)
    amount = charge(
        measured.input,
        measured.output,
        cached=cached,
        input_rate=ticket.input_rate,
        output_rate=ticket.output_rate,
        cache_read_rate=ticket.cache_read_rate,
        min_price=ticket.min_price,
        base_max=base_of(ticket),
    )
    return sign_receipt(
        seed,
        Receipt(
            ticket_id=ticket.ticket_id,
            actual_input_count=measured.input,
            actual_output_count=measured.output,
            amount_charged=amount,
            ttft_ms=measured.ttft_ms,
            decode_ms=measured.decode_ms,
            body_hash=body_hash,
            input_usage_type=USAGE_TOKENS,
            output_usage_type=USAGE_TOKENS,
            cached_input_count=cached,
        ),
    )


async def book(ledger: Ledger, ledger_tx: str, receipt: Receipt) -> None:
    """Write the node's claim down. Raises nothing: what fails is logged, and the payer gets his hold back.

    The receipt goes out all the same: it says what was made.
    """
    values = Values(
        amount=receipt.amount_charged,
        receipt_digest=receipt_digest(receipt).hex(),
        ttft_ms=receipt.ttft_ms,
        decode_ms=receipt.decode_ms,
        input_count=receipt.actual_input_count,
        output_count=receipt.actual_output_count,
        input_usage_type=receipt.input_usage_type,
        output_usage_type=receipt.output_usage_type,
        aux_output_usage_type=receipt.aux_output_usage_type,
    )
    try:
        await ledger.receipt(ledger_tx, values)
    except LedgerRefusal as refusal:
        _log.error("a receipt is not in the ledger: %s", refusal.code)
    except EnvError as error:
        _log.error("a receipt is not in the ledger: %s", error.fault.sentence)

"""The receipt: what an answer came to, signed by the node signing key (wire §4.8)."""

from __future__ import annotations

import hmac
import re
from typing import Final, Literal

import msgspec

from relaydesk.core.relay.records.canonical import (
    U8,
    U64,
    RecordError,
    S,
    b64,
    decode_record,
    digest,
    sign,
    unb64,
    verify_text,
)
from relaydesk.core.relay.records.ticket import ID_SIZE, USAGE_NONE, Ticket

DOMAIN: Final = b"zs-receipt-v2\0"

_HASH: Final = re.compile(r"[0-9a-f]{64}")

Wrong = Literal["signature", "ticket", "price", "body_hash", "cached"]


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """``amount_charged`` is in microUSDC, times in milliseconds, ``body_hash`` 64 lowercase hex digits.

    ``cached_input_count`` is a part of ``actual_input_count``.
    """

    ticket_id: str
    actual_input_count: int
    actual_output_count: int
    amount_charged: int
    ttft_ms: int
    decode_ms: int
    body_hash: str
    input_usage_type: int = USAGE_NONE
    output_usage_type: int = USAGE_NONE
    aux_output_usage_type: int = USAGE_NONE
    aux_output_count: int = 0
    cached_input_count: int = 0
    sig: str = ""


_DECODER: Final = msgspec.json.Decoder(Receipt)


def receipt_bytes(receipt: Receipt) -> bytes:
    """What is signed. Raises `RecordError` where a number is out of range."""
    return b"".join(
        (
            DOMAIN,
            S(receipt.ticket_id),
            U64(receipt.actual_input_count),
            U64(receipt.actual_output_count),
            U64(receipt.amount_charged),
            U64(receipt.ttft_ms),
            U64(receipt.decode_ms),
            S(receipt.body_hash),
            U8(receipt.input_usage_type),
            U8(receipt.output_usage_type),
            U8(receipt.aux_output_usage_type),
            U64(receipt.aux_output_count),
            U64(receipt.cached_input_count),
        )
    )


def receipt_digest(receipt: Receipt) -> bytes:
    """SHA-256 of what is signed, 32 bytes: what both sides claim in settlement. Raises `RecordError`."""
    return digest(receipt_bytes(receipt))


def sign_receipt(seed: bytes, receipt: Receipt) -> Receipt:
    """``receipt`` signed by the node signing key of ``seed``. Raises `RecordError`."""
    return msgspec.structs.replace(receipt, sig=b64(sign(seed, receipt_bytes(receipt))))


def receipt_is_signed(receipt: Receipt, public: bytes) -> bool:
    """Whether the node signing key ``public`` signed it. Never raises."""
    try:
        return verify_text(public, receipt_bytes(receipt), receipt.sig)
    except RecordError:
        return False


def encode_receipt(receipt: Receipt) -> bytes:
    """The receipt as JSON."""
    return msgspec.json.encode(receipt)


def decode_receipt(data: bytes) -> Receipt:
    """A receipt, not yet checked. Raises `RecordError`."""
    receipt = decode_record(_DECODER, data, "the receipt")
    receipt_bytes(receipt)
    unb64(receipt.ticket_id, "the receipt's ticket", ID_SIZE)
    if _HASH.fullmatch(receipt.body_hash) is None:
        raise RecordError("the receipt's body_hash is not 64 lowercase hex digits")
    return receipt


def check_receipt(receipt: Receipt, ticket: Ticket, public: bytes, body_hash: str) -> Wrong | None:
    """The first thing wrong with a receipt for ``ticket``, or None. Never raises.

    ``public`` is the key that signed the ticket, ``body_hash`` of what was really received. A wrong hash
    under a good signature is what a payer may protest.
    """
    if not receipt_is_signed(receipt, public):
        return "signature"
    if receipt.ticket_id != ticket.ticket_id:
        return "ticket"
    if receipt.amount_charged > ticket.max_price:
        return "price"
    if not hmac.compare_digest(receipt.body_hash.encode(), body_hash.encode()):
        return "body_hash"
    if receipt.cached_input_count > receipt.actual_input_count:
        return "cached"
    return None

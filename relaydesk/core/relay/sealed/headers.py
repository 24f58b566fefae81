"""The sealed headers of an answer that is not streamed: receipt and settle group (wire §4.7).

Base64 twice: what is sealed is text already, so that it may stand in a header once it is opened.
"""

from __future__ import annotations

from typing import Final

from relaydesk.core.relay.records.canonical import RecordError, b64, unb64
from relaydesk.core.relay.sealed.aad import RECEIPT, SETTLE_GROUP, header_aad
from relaydesk.core.relay.sealed.box import Exchange, seal_joined, unseal_joined
from relaydesk.core.relay.sealed.envelope import SealedError

RECEIPT_HEADER: Final = "X-Zs-Receipt"
SETTLE_GROUP_HEADER: Final = "X-Zs-Settle-Group"
# As much as servers take of one header line.
VALUE_LIMIT: Final = 16384


def seal_receipt(exchange: Exchange, receipt: bytes, nonce: bytes) -> str:
    """``X-Zs-Receipt`` for a receipt's JSON; ``nonce`` has 12 random bytes."""
    return _seal(exchange, RECEIPT, receipt, nonce)


def open_receipt(exchange: Exchange, value: str) -> bytes | None:
    """A receipt's JSON, or None: a header that does not open counts as absent."""
    return _open(exchange, RECEIPT, value)


def seal_settle_group(exchange: Exchange, group: bytes, nonce: bytes) -> str:
    """``X-Zs-Settle-Group`` for what the settlement needs, which the wire does not look into."""
    return _seal(exchange, SETTLE_GROUP, group, nonce)


def open_settle_group(exchange: Exchange, value: str) -> bytes | None:
    """A settle group, or None as in `open_receipt`."""
    return _open(exchange, SETTLE_GROUP, value)


def _seal(exchange: Exchange, name: str, data: bytes, nonce: bytes) -> str:
    aad = header_aad(exchange.tx_id, exchange.ticket_id, name)
    return b64(seal_joined(exchange.key, aad, nonce, b64(data).encode()))


def _open(exchange: Exchange, name: str, value: str) -> bytes | None:
    if len(value) > VALUE_LIMIT:
        return None
    aad = header_aad(exchange.tx_id, exchange.ticket_id, name)
    try:
        inside = unseal_joined(exchange.key, aad, unb64(value, "the header"))
        return unb64(inside, "what the header seals")
    except (RecordError, SealedError):
        return None

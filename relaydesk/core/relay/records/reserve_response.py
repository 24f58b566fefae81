"""The answer to a reserve: the signed ticket and the wrapped response key (wire §4.3)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from relaydesk.core.relay.records.canonical import RecordError, decode_record, unb64
from relaydesk.core.relay.records.ticket import Ticket, check_shape

MEDIA_TYPE: Final = "application/vnd.zs-reserve-response+json"
# A wrapped key has some 300 characters, two transactions fit into this many times over.
KEY_LIMIT: Final = 4096
OPEN_LIMIT: Final = 16384
_NULL: Final = b"null"


class ReserveResponse(msgspec.Struct, frozen=True, kw_only=True):
    """``wrapped_response_key`` is as `sealed.response_key` makes it. ``presigned_open_txn`` is base64 of what
    opens the escrow, opaque here; without a chain it may be missing. ``relaydesk_ledger`` is our own: how the
    payer's account stands, as JSON.
    """

    ticket: Ticket
    wrapped_response_key: str
    presigned_open_txn: str | None = None
    algo_usd_price: float | None = None
    relaydesk_ledger: msgspec.Raw = msgspec.Raw(_NULL)

    @property
    def ledger(self) -> bytes:
        """The JSON value of ``relaydesk_ledger``, or empty."""
        data = bytes(self.relaydesk_ledger)
        return b"" if data == _NULL else data


_DECODER: Final = msgspec.json.Decoder(ReserveResponse)


def encode_response(response: ReserveResponse) -> bytes:
    """The response as JSON; what is None is left out."""
    said: dict[str, Any] = {name: getattr(response, name) for name in response.__struct_fields__}
    if not response.ledger:
        said.pop("relaydesk_ledger")
    return msgspec.json.encode({name: value for name, value in said.items() if value is not None})


def decode_response(data: bytes) -> ReserveResponse:
    """A response that was sealed to us, its ticket not yet verified. Raises `RecordError`."""
    response = decode_record(_DECODER, data, "the reserve's response")
    check_shape(response.ticket)
    if len(response.wrapped_response_key) > KEY_LIMIT:
        raise RecordError("the response key is too long")
    unb64(response.wrapped_response_key, "the response key")
    if response.presigned_open_txn:
        if len(response.presigned_open_txn) > OPEN_LIMIT:
            raise RecordError("presigned_open_txn is too long")
        unb64(response.presigned_open_txn, "presigned_open_txn")
    return response

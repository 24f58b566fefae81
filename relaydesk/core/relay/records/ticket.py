"""The ticket: what a target commits itself to at reserve, signed by its node signing key (wire §4.3)."""

from __future__ import annotations

from typing import Final

import msgspec

from relaydesk.core.relay.records.canonical import (
    I64,
    U8,
    U64,
    B,
    RecordError,
    S,
    b64,
    decode_record,
    sign,
    unb64,
    verify_text,
)
from relaydesk.core.relay.records.reserve import TEXT_LIMIT, ReserveRequest
from relaydesk.core.relay.ref import NodeRef

DOMAIN: Final = b"zs-ticket-v2\0"
ID_SIZE: Final = 16

# What a count counts.
USAGE_NONE: Final = 0
USAGE_TOKENS: Final = 1
USAGE_IMAGES: Final = 2
USAGE_CHARACTERS: Final = 3
USAGE_SECONDS: Final = 4


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """Prices in microUSDC, rates per million tokens, ``expires_at`` in seconds. Texts are signed as sent.

    What old nodes do not say is 0, and signed as 0.
    """

    ticket_id: str
    operator_id: int
    node_id: int
    input_count: int
    max_output_count: int
    input_rate: int
    output_rate: int
    max_price: int
    min_price: int
    expires_at: int
    model: str
    stream: bool = False
    commit_k: str
    input_usage_type: int = USAGE_NONE
    output_usage_type: int = USAGE_NONE
    cache_read_rate: int = 0
    sig: str = ""

    @property
    def ref(self) -> NodeRef:
        """Whose ticket it says it is."""
        return NodeRef(self.operator_id, self.node_id)


_DECODER: Final = msgspec.json.Decoder(Ticket)


def new_ticket_id(raw: bytes) -> str:
    """A ticket's id of 16 random bytes. Raises `ValueError` for another number of them."""
    if len(raw) != ID_SIZE:
        raise ValueError("a ticket's id has 16 bytes")
    return b64(raw)


def ticket_bytes(ticket: Ticket) -> bytes:
    """What is signed. Raises `RecordError` where a number is out of range."""
    return b"".join(
        (
            DOMAIN,
            S(ticket.ticket_id),
            U64(ticket.operator_id),
            U64(ticket.node_id),
            U64(ticket.input_count),
            U64(ticket.max_output_count),
            U64(ticket.input_rate),
            U64(ticket.output_rate),
            U64(ticket.max_price),
            U64(ticket.min_price),
            I64(ticket.expires_at),
            S(ticket.model),
            B(ticket.stream),
            S(ticket.commit_k),
            U8(ticket.input_usage_type),
            U8(ticket.output_usage_type),
            U64(ticket.cache_read_rate),
        )
    )


def sign_ticket(seed: bytes, ticket: Ticket) -> Ticket:
    """``ticket`` signed by the node signing key of ``seed``. Raises `RecordError`."""
    return msgspec.structs.replace(ticket, sig=b64(sign(seed, ticket_bytes(ticket))))


def ticket_is_signed(ticket: Ticket, public: bytes) -> bool:
    """Whether the node signing key ``public`` signed it. Never raises."""
    try:
        return verify_text(public, ticket_bytes(ticket), ticket.sig)
    except RecordError:
        return False


def encode_ticket(ticket: Ticket) -> bytes:
    """The ticket as JSON."""
    return msgspec.json.encode(ticket)


def decode_ticket(data: bytes | msgspec.Raw) -> Ticket:
    """A ticket, its signature not yet checked. Raises `RecordError`."""
    ticket = decode_record(_DECODER, data, "the ticket")
    check_shape(ticket)
    return ticket


def check_shape(ticket: Ticket) -> None:
    """Refuse numbers out of range and ids that are none. Raises `RecordError`."""
    if len(ticket.model) > TEXT_LIMIT:
        raise RecordError("the ticket's model has too long a name")
    ticket_bytes(ticket)
    unb64(ticket.ticket_id, "the ticket's id", ID_SIZE)
    unb64(ticket.commit_k, "the ticket's commitment", 32)


def not_as_asked(ticket: Ticket, ref: NodeRef, request: ReserveRequest) -> str | None:
    """The first field of the ticket that is not what was reserved, or None. Prices are judged elsewhere.

    A node may lower the counts to what fits, and raises the input a little where it is very small.
    """
    if ticket.operator_id != ref.operator:
        return "operator_id"
    if ticket.node_id != ref.node:
        return "node_id"
    if ticket.model != request.model:
        return "model"
    if ticket.stream != request.stream:
        return "stream"
    if ticket.max_output_count > request.max_output_count:
        return "max_output_count"
    return None

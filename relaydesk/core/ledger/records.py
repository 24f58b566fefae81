"""The records of the ledger: what somebody signs, as fields and as the bytes under the signature.

Each is signed like the wire's own records (Ed25519 over SHA-256, wire §4) under a domain of ours. Texts are
hashed as they stand on the wire; amounts are integer microunits.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol

import msgspec

from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.relay.address import decode_address
from relaydesk.core.relay.records.canonical import I64, U8, U64, RecordError, S, b64, verify_text

# Every client reads JSON numbers up to here exactly, and SQLite adds a thousand of them without overflow.
MOST: Final = 2**53 - 1
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
Small = Annotated[int, msgspec.Meta(ge=0, le=255)]
Hash = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
TxId = Annotated[str, msgspec.Meta(pattern=r"\A[A-Z2-7]{52}\Z")]
Side = Literal["node", "payer"]
Outcome = Literal["settled", "lapsed", "refunded", "frozen", "resolved"]

BODY_HASH: Final = 1


class Signer(Protocol):
    """Whoever signs: an Ed25519 key that stays where it is."""

    @property
    def address(self) -> str:
        """The public key as an address (wire §4.1)."""
        ...

    def sign(self, canonical: bytes) -> bytes:
        """64 bytes: Ed25519 over the SHA-256 of ``canonical``."""
        ...


class Record(msgspec.Struct, frozen=True, tag_field="record", tag=str.lower):
    """Base of all records."""

    domain: ClassVar[bytes] = b""

    def fields(self) -> bytes:
        """The fields in their signed order."""
        raise AssertionError("a record without fields")

    def canonical(self) -> bytes:
        """The bytes under the signature. Raises `RecordError` for a field that does not fit."""
        return self.domain + self.fields()


class OpenRecord(Record, frozen=True, tag="open"):
    """The payer lets ``max_price`` be held for one ticket until it is settled. Signed by the payer.

    ``ticket_id`` is base64 of 16 bytes, ``expires_at`` the ticket's, in seconds since 1970.
    """

    domain: ClassVar[bytes] = b"relaydesk-open-v1\0"
    ticket_id: str
    operator: Annotated[int, msgspec.Meta(ge=0)]
    node: Annotated[int, msgspec.Meta(ge=0)]
    payer: str
    max_price: Count
    expires_at: Count

    def fields(self) -> bytes:
        return b"".join(
            (
                ticket_bytes(self.ticket_id),
                U64(self.operator),
                U64(self.node),
                S(self.payer),
                U64(self.max_price),
                I64(self.expires_at),
            )
        )

    def tx_id(self) -> str:
        """The transaction id: 52 characters of base32 of the SHA-256 of the signed bytes."""
        return tx_id_of(self.canonical())


class Values(msgspec.Struct, frozen=True):
    """The nine values two claims must agree on (wire §4.9).

    ``receipt_digest`` is the SHA-256 of the receipt's signed bytes (wire §4.8); the three usage types are
    the modality values.
    """

    amount: Count
    receipt_digest: Hash
    ttft_ms: Count
    decode_ms: Count
    input_count: Count
    output_count: Count
    input_usage_type: Small
    output_usage_type: Small
    aux_output_usage_type: Small


class Claim(Record, frozen=True):
    """What one side says a ticket cost. Signed by that side."""

    domain: ClassVar[bytes] = b"relaydesk-claim-v1\0"
    tx_id: TxId
    ticket_id: str
    side: Side
    values: Values

    def fields(self) -> bytes:
        said = self.values
        return b"".join(
            (
                S(self.tx_id),
                ticket_bytes(self.ticket_id),
                S(self.side),
                U64(said.amount),
                S(said.receipt_digest),
                U64(said.ttft_ms),
                U64(said.decode_ms),
                U64(said.input_count),
                U64(said.output_count),
                U8(said.input_usage_type),
                U8(said.output_usage_type),
                U8(said.aux_output_usage_type),
            )
        )


class Protest(Record, frozen=True):
    """The payer says that the answer was not what its receipt states. Signed by the payer.

    ``reason`` 1: the body's hash; ``body_hash`` is that of what was received.
    """

    domain: ClassVar[bytes] = b"relaydesk-protest-v1\0"
    tx_id: TxId
    ticket_id: str
    reason: Literal[1]
    body_hash: Hash

    def fields(self) -> bytes:
        return S(self.tx_id) + ticket_bytes(self.ticket_id) + U8(self.reason) + S(self.body_hash)


class VoucherRecord(Record, frozen=True, tag="voucher"):
    """The operator owes ``amount`` to who has the code that hashes to ``voucher``. Signed by the operator.

    ``expires_ms`` is 0 for never.
    """

    domain: ClassVar[bytes] = b"relaydesk-voucher-v1\0"
    voucher: Hash
    operator: Annotated[int, msgspec.Meta(ge=0)]
    node: Annotated[int, msgspec.Meta(ge=0)]
    amount: Count
    issued_ms: Count
    expires_ms: Count

    def fields(self) -> bytes:
        return (
            S(self.voucher)
            + U64(self.operator)
            + U64(self.node)
            + U64(self.amount)
            + I64(self.issued_ms)
            + I64(self.expires_ms)
        )


class Redemption(Record, frozen=True):
    """A voucher became credit of ``payer``. Signed by the operator."""

    domain: ClassVar[bytes] = b"relaydesk-redemption-v1\0"
    voucher: Hash
    payer: str
    amount: Count
    at_ms: Count

    def fields(self) -> bytes:
        return S(self.voucher) + S(self.payer) + U64(self.amount) + I64(self.at_ms)


class Closing(Record, frozen=True):
    """What became of a ticket. Signed by the node; ``resolved``: by the operator."""

    domain: ClassVar[bytes] = b"relaydesk-closing-v1\0"
    tx_id: TxId
    ticket_id: str
    outcome: Outcome
    amount: Count
    fee: Count
    at_ms: Count

    def fields(self) -> bytes:
        return b"".join(
            (
                S(self.tx_id),
                ticket_bytes(self.ticket_id),
                S(self.outcome),
                U64(self.amount),
                U64(self.fee),
                I64(self.at_ms),
            )
        )


AnyRecord = OpenRecord | Claim | Protest | Redemption | Closing


def tx_id_of(canonical: bytes) -> str:
    """52 characters of unpadded base32 of a SHA-256 (wire §6)."""
    return base64.b32encode(hashlib.sha256(canonical).digest()).decode().rstrip("=")


def signature(signer: Signer, record: Record) -> str:
    """A signature as the wire has it: base64 of 64 bytes."""
    return b64(signer.sign(record.canonical()))


def check_signature(address: str, record: Record, sig: str) -> None:
    """That ``sig`` is the address's over the record.

    Raises `LedgerRefusal`: ``bad_signature``; ``bad_record`` where the address is none or a field is off.
    """
    try:
        canonical, public = record.canonical(), decode_address(address)
    except ValueError as error:
        raise LedgerRefusal("bad_record") from error
    if not verify_text(public, canonical, sig):
        raise LedgerRefusal("bad_signature")


def ticket_bytes(ticket_id: str) -> bytes:
    """The 16 bytes of a ticket's id. Raises `RecordError` where it is not base64 of so many."""
    try:
        raw = binascii.a2b_base64(ticket_id.encode(), strict_mode=True)
    except (ValueError, UnicodeEncodeError) as error:
        raise RecordError("the ticket's id is not base64") from error
    if len(raw) != 16:
        raise RecordError("the ticket's id has not 16 bytes")
    return raw


def fields_of(record: Record) -> dict[str, Any]:
    """A record as JSON-able data, without its tag."""
    found: dict[str, Any] = msgspec.to_builtins(record)
    found.pop("record")
    return found

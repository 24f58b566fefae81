"""The JSON of ours beside the wire's (design §6), sent only to targets that announce `relaydesk_ledger`.

In a reserve: ``relaydesk_voucher`` (a code) and ``relaydesk_settle`` (claims and protests of earlier
tickets); in its sealed answer ``relaydesk_ledger``; in the inner header of a request ``relaydesk_open``.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from relaydesk.core.ledger.records import (
    Claim,
    Count,
    OpenRecord,
    Protest,
    Values,
    fields_of,
)
from relaydesk.core.ledger.refusal import LedgerRefusal
from relaydesk.core.relay.records.canonical import RecordError

# Of one reserve; the rest waits for the next one.
MOST_SETTLEMENTS: Final = 64
Signature = Annotated[str, msgspec.Meta(min_length=88, max_length=88)]


class OpenRequest(msgspec.Struct, frozen=True):
    """``relaydesk_open``: the fields of an `OpenRecord`, and the payer's signature over it (base64)."""

    ticket_id: str
    operator: Annotated[int, msgspec.Meta(ge=0)]
    node: Annotated[int, msgspec.Meta(ge=0)]
    payer: str
    max_price: Count
    expires_at: Count
    sig: Signature

    @property
    def record(self) -> OpenRecord:
        return OpenRecord(
            self.ticket_id, self.operator, self.node, self.payer, self.max_price, self.expires_at
        )


class ClaimRequest(msgspec.Struct, frozen=True, tag_field="kind", tag="claim"):
    """An item of ``relaydesk_settle``: the payer's `Claim`, its nine values side by side."""

    tx_id: str
    ticket_id: str
    amount: Count
    receipt_digest: str
    ttft_ms: Count
    decode_ms: Count
    input_count: Count
    output_count: Count
    input_usage_type: int
    output_usage_type: int
    aux_output_usage_type: int
    sig: Signature


class ProtestRequest(msgspec.Struct, frozen=True, tag_field="kind", tag="protest"):
    """An item of ``relaydesk_settle``: the payer's `Protest`."""

    tx_id: str
    ticket_id: str
    reason: int
    body_hash: str
    sig: Signature


Settlement = ClaimRequest | ProtestRequest
Settlements = Annotated[list[Settlement], msgspec.Meta(max_length=MOST_SETTLEMENTS)]


Word = Annotated[str, msgspec.Meta(max_length=32)]


class Settled(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one item: the ticket's state now, or why it was refused."""

    tx_id: Annotated[str, msgspec.Meta(max_length=64)]
    state: Word = ""
    refused: Word = ""


class LedgerNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """``relaydesk_ledger`` in the sealed answer to a reserve: how the payer's account stands.

    ``voucher`` is what the reserve's voucher brought, None where it brought nothing and ``refused`` says why.
    """

    balance: Count
    held: Count
    voucher: Count | None = None
    refused: Word = ""
    settled: Annotated[tuple[Settled, ...], msgspec.Meta(max_length=MOST_SETTLEMENTS)] = ()


def open_json(record: OpenRecord, sig: str) -> dict[str, Any]:
    """What ``relaydesk_open`` carries."""
    return {**fields_of(record), "sig": sig}


def claim_json(claim: Claim, sig: str) -> dict[str, Any]:
    """A claim as an item of ``relaydesk_settle``."""
    found = fields_of(claim)
    values = found.pop("values")
    found.pop("side")
    return {"kind": "claim", **found, **values, "sig": sig}


def protest_json(protest: Protest, sig: str) -> dict[str, Any]:
    """A protest as an item of ``relaydesk_settle``."""
    return {"kind": "protest", **fields_of(protest), "sig": sig}


def read_open(data: bytes | msgspec.Raw) -> OpenRequest:
    """``relaydesk_open``. Raises `LedgerRefusal` ``bad_record``."""
    found: OpenRequest = _checked(data, OpenRequest)
    return found


def read_settlements(data: bytes | msgspec.Raw) -> tuple[Settlement, ...]:
    """``relaydesk_settle``. Raises `LedgerRefusal` ``bad_record``, also for more than `MOST_SETTLEMENTS`."""
    return tuple(_checked(data, Settlements))


def read_note(data: bytes | msgspec.Raw) -> LedgerNote:
    """``relaydesk_ledger`` of a target. Raises `LedgerRefusal` ``bad_record``."""
    found: LedgerNote = _checked(data, LedgerNote)
    return found


def record_of(item: Settlement) -> Claim | Protest:
    """The record that an item is signed over. Raises `LedgerRefusal` ``bad_record``."""
    fields = msgspec.to_builtins(item)
    try:
        if isinstance(item, ProtestRequest):
            return msgspec.convert({**fields, "record": "protest"}, Protest)
        values = {name: fields[name] for name in Values.__struct_fields__}
        return msgspec.convert({**fields, "record": "claim", "side": "payer", "values": values}, Claim)
    except msgspec.ValidationError as error:
        raise LedgerRefusal("bad_record") from error


def _checked(data: bytes | msgspec.Raw, kind: Any) -> Any:
    try:
        found = msgspec.json.decode(data, type=kind)
        if isinstance(found, OpenRequest):
            found.record.canonical()
    except (msgspec.MsgspecError, RecordError, ValueError, RecursionError) as error:
        raise LedgerRefusal("bad_record") from error
    return found

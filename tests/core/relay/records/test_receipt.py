"""The receipt: signed bytes, strict reading, and each check of the caller."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings

from relaydesk.core.relay.records.canonical import RecordError
from relaydesk.core.relay.records.receipt import (
    Receipt,
    check_receipt,
    decode_receipt,
    encode_receipt,
    receipt_digest,
    receipt_is_signed,
    sign_receipt,
)
from relaydesk.core.relay.records.ticket import Ticket
from tests.support.mutants import survives
from tests.support.mutate import mutated

SEED = b"\x05" * 32
KEY = Ed25519PrivateKey.from_private_bytes(SEED)
PUBLIC = KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
ID = base64.b64encode(bytes(range(16))).decode()
HASH = hashlib.sha256(b"answer").hexdigest()
SAID: dict[str, Any] = {
    "ticket_id": ID,
    "actual_input_count": 90,
    "actual_output_count": 12,
    "amount_charged": 149,
    "ttft_ms": 120,
    "decode_ms": 3400,
    "body_hash": HASH,
    "input_usage_type": 1,
    "output_usage_type": 2,
    "aux_output_usage_type": 3,
    "aux_output_count": 4,
    "cached_input_count": 90,
}
RECEIPT = Receipt(**SAID)
TICKET = Ticket(
    ticket_id=ID, operator_id=1, node_id=0, input_count=100, max_output_count=200, input_rate=1,
    output_rate=1, max_price=149, min_price=0, expires_at=1, model="m", commit_k="",
)  # fmt: skip


def by_hand() -> bytes:
    said = b"zs-receipt-v2\0" + b"\0\0\0\x18" + ID.encode() + struct.pack(">5Q", 90, 12, 149, 120, 3400)
    return said + b"\0\0\0\x40" + HASH.encode() + b"\x01\x02\x03" + struct.pack(">2Q", 4, 90)


def test_it_is_signed_as_the_wire_says() -> None:
    hashed = hashlib.sha256(by_hand()).digest()
    made = sign_receipt(SEED, RECEIPT)
    assert made.sig == base64.b64encode(KEY.sign(hashed)).decode()
    assert receipt_digest(made) == hashed
    assert receipt_is_signed(made, PUBLIC) and not receipt_is_signed(RECEIPT, PUBLIC)


def test_what_is_written_is_read() -> None:
    made = sign_receipt(SEED, RECEIPT)
    assert json.loads(encode_receipt(made)) == {**SAID, "sig": made.sig}
    assert decode_receipt(encode_receipt(made)) == made
    few = {
        key: said for key, said in SAID.items() if not key.startswith(("input", "output", "aux", "cached"))
    }
    assert decode_receipt(json.dumps(few).encode()).cached_input_count == 0


@pytest.mark.parametrize(
    "change",
    [
        {"ticket_id": "x"},
        {"body_hash": HASH.upper()},
        {"body_hash": HASH[:-1]},
        {"body_hash": HASH + "\n"},
        {"amount_charged": -1},
        {"amount_charged": 2**64},
        {"amount_charged": 1.5},
        {"amount_charged": True},
        {"amount_charged": None},
        {"aux_output_usage_type": 256},
    ],
)
def test_what_is_no_receipt(change: dict[str, Any]) -> None:
    with pytest.raises(RecordError):
        decode_receipt(json.dumps({**SAID, **change}).encode())


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({}, None),
        ({"ticket_id": base64.b64encode(bytes(16)).decode()}, "ticket"),
        ({"amount_charged": 150}, "price"),
        ({"amount_charged": 150, "cached_input_count": 91}, "price"),
        ({"body_hash": "0" * 64}, "body_hash"),
        ({"cached_input_count": 91}, "cached"),
    ],
)
def test_each_check_of_the_caller(change: dict[str, Any], wrong: str | None) -> None:
    made = sign_receipt(SEED, Receipt(**{**SAID, **change}))
    assert check_receipt(made, TICKET, PUBLIC, HASH) == wrong
    # Whatever else is wrong, an unsigned receipt says nothing.
    assert check_receipt(msgspec.structs.replace(made, sig=""), TICKET, PUBLIC, HASH) == "signature"
    assert check_receipt(made, TICKET, PUBLIC[::-1], HASH) == "signature"


@pytest.mark.parametrize("name", list(SAID))
def test_no_field_can_be_changed(name: str) -> None:
    value = SAID[name] + "x" if isinstance(SAID[name], str) else SAID[name] - 1
    changed = msgspec.structs.replace(sign_receipt(SEED, RECEIPT), **{name: value})
    assert check_receipt(changed, TICKET, PUBLIC, HASH) == "signature"


def test_what_utf8_cannot_say_is_not_signed() -> None:
    odd = msgspec.structs.replace(RECEIPT, body_hash="\ud800")
    assert check_receipt(odd, TICKET, PUBLIC, HASH) == "signature"


@settings(max_examples=150, deadline=None)
@given(mutated({**SAID, "sig": sign_receipt(SEED, RECEIPT).sig}))
def test_any_json_is_read_or_refused(value: dict[str, Any]) -> None:
    try:
        found = decode_receipt(json.dumps(value).encode())
    except RecordError:
        return
    assert (check_receipt(found, TICKET, PUBLIC, HASH) is None) == (found == sign_receipt(SEED, RECEIPT))


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_mutated_bytes(count: int) -> None:
    survives(decode_receipt, RecordError, encode_receipt(sign_receipt(SEED, RECEIPT)), count)

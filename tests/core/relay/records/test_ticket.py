"""The ticket: signed bytes, strict reading, and what it must have in common with the request."""

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
from relaydesk.core.relay.records.reserve import ReserveRequest
from relaydesk.core.relay.records.ticket import (
    Ticket,
    decode_ticket,
    encode_ticket,
    new_ticket_id,
    not_as_asked,
    sign_ticket,
    ticket_is_signed,
)
from relaydesk.core.relay.ref import NodeRef
from tests.support.mutants import survives
from tests.support.mutate import mutated

SEED = b"\x05" * 32
KEY = Ed25519PrivateKey.from_private_bytes(SEED)
PUBLIC = KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
ID = base64.b64encode(bytes(range(16))).decode()
COMMIT = base64.b64encode(bytes(32)).decode()
SAID: dict[str, Any] = {
    "ticket_id": ID,
    "operator_id": 2**64 - 1,
    "node_id": 7,
    "input_count": 100,
    "max_output_count": 200,
    "input_rate": 150000,
    "output_rate": 600000,
    "max_price": 149,
    "min_price": 3,
    "expires_at": 1_700_000_000,
    "model": "smollm2 é",
    "stream": True,
    "commit_k": COMMIT,
    "input_usage_type": 1,
    "output_usage_type": 1,
    "cache_read_rate": 75000,
}
TICKET = Ticket(**SAID)
ASKED = ReserveRequest(model="smollm2 é", input_count=100, max_output_count=200, stream=True)


def by_hand() -> bytes:
    said = b"zs-ticket-v2\0" + b"\0\0\0\x18" + ID.encode()
    said += struct.pack(">8Qq", 2**64 - 1, 7, 100, 200, 150000, 600000, 149, 3, 1_700_000_000)
    said += b"\0\0\0\x0asmollm2 \xc3\xa9" + b"\x01" + b"\0\0\0\x2c" + COMMIT.encode() + b"\x01\x01"
    return said + struct.pack(">Q", 75000)


def test_it_is_signed_as_the_wire_says() -> None:
    made = sign_ticket(SEED, TICKET)
    assert made.sig == base64.b64encode(KEY.sign(hashlib.sha256(by_hand()).digest())).decode()
    assert ticket_is_signed(made, PUBLIC) and not ticket_is_signed(made, PUBLIC[::-1])
    assert not ticket_is_signed(TICKET, PUBLIC)


@pytest.mark.parametrize("name", [name for name in SAID if name != "stream"])
def test_no_field_can_be_changed(name: str) -> None:
    made = sign_ticket(SEED, TICKET)
    value = SAID[name] + "x" if isinstance(SAID[name], str) else SAID[name] - 1
    assert not ticket_is_signed(msgspec.structs.replace(made, **{name: value}), PUBLIC)
    assert not ticket_is_signed(msgspec.structs.replace(made, stream=False), PUBLIC)


def test_numbers_out_of_range_are_never_signed() -> None:
    assert not ticket_is_signed(msgspec.structs.replace(TICKET, node_id=2**64), PUBLIC)
    with pytest.raises(RecordError):
        sign_ticket(SEED, msgspec.structs.replace(TICKET, input_usage_type=256))


def test_what_is_written_is_read() -> None:
    made = sign_ticket(SEED, TICKET)
    assert json.loads(encode_ticket(made)) == {**SAID, "sig": made.sig}
    assert decode_ticket(encode_ticket(made)) == made
    assert made.ref == NodeRef(2**64 - 1, 7)
    assert decode_ticket(json.dumps({**SAID, "x": [1]}, indent=1).encode()) == TICKET
    few = {key: said for key, said in SAID.items() if "usage" not in key and "cache" not in key}
    assert decode_ticket(json.dumps(few).encode()).cache_read_rate == 0


@pytest.mark.parametrize(
    "change",
    [
        {"ticket_id": ID[:-4]},
        {"ticket_id": "x"},
        {"commit_k": ID},
        {"input_count": 1.0},
        {"input_count": True},
        {"input_count": -1},
        {"input_count": 2**64},
        {"expires_at": 2**63},
        {"input_usage_type": 256},
        {"model": "x" * 257},
        {"model": None},
        {"stream": 1},
        {"max_price": "149"},
    ],
)
def test_what_is_no_ticket(change: dict[str, Any]) -> None:
    with pytest.raises(RecordError):
        decode_ticket(json.dumps({**SAID, **change}).encode())


@pytest.mark.parametrize("name", ["ticket_id", "operator_id", "max_price", "expires_at", "model", "commit_k"])
def test_what_a_ticket_must_say(name: str) -> None:
    with pytest.raises(RecordError):
        decode_ticket(json.dumps({key: said for key, said in SAID.items() if key != name}).encode())


def test_ids() -> None:
    assert new_ticket_id(bytes(range(16))) == ID
    with pytest.raises(ValueError, match="16"):
        new_ticket_id(bytes(15))


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({}, None),
        ({"max_output_count": 199, "input_count": 99}, None),
        ({"operator_id": 1}, "operator_id"),
        ({"node_id": 8}, "node_id"),
        ({"model": "x"}, "model"),
        ({"stream": False}, "stream"),
        ({"max_output_count": 201}, "max_output_count"),
    ],
)
def test_a_ticket_is_for_what_was_asked(change: dict[str, Any], wrong: str | None) -> None:
    assert not_as_asked(Ticket(**{**SAID, **change}), NodeRef(2**64 - 1, 7), ASKED) == wrong


@settings(max_examples=150, deadline=None)
@given(mutated({**SAID, "sig": sign_ticket(SEED, TICKET).sig}))
def test_any_json_is_read_or_refused(value: dict[str, Any]) -> None:
    try:
        found = decode_ticket(json.dumps(value).encode())
    except RecordError:
        return
    same = all(getattr(found, name) == said for name, said in SAID.items())
    assert ticket_is_signed(found, PUBLIC) == (same and found.sig == sign_ticket(SEED, TICKET).sig)


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_mutated_bytes(count: int) -> None:
    survives(decode_ticket, RecordError, encode_ticket(sign_ticket(SEED, TICKET)), count)

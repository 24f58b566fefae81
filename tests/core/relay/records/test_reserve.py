"""The reserve request: its JSON, its rules in order, and the payer's signature for one node."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from functools import partial
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings

from relaydesk.core.relay.address import encode_address
from relaydesk.core.relay.records.canonical import sign
from relaydesk.core.relay.records.reserve import (
    ReserveError,
    ReserveRequest,
    check_payer,
    decode_reserve,
    encode_reserve,
    in_window,
    payer_key,
    sign_reserve,
)
from relaydesk.core.relay.ref import NodeRef
from tests.support.mutants import survives
from tests.support.mutate import mutated

SEED = b"\x09" * 32
SIGN = partial(sign, SEED)
KEY = Ed25519PrivateKey.from_private_bytes(SEED)
PUBLIC = KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
PAYER = encode_address(PUBLIC)
RECIPIENT = "age1rc8wp62cfvmldwhm49mdp5lg3gu6qkrs2whhactp0w9nqjk6wp7sl74d8s"
REF = NodeRef(42, 7)
NOW = 1_700_000_000
SAID: dict[str, Any] = {
    "model": "smollm2",
    "input_count": 1234,
    "max_output_count": 512,
    "stream": True,
    "proxy_recipient": RECIPIENT,
    "payer_addr": PAYER,
}
REQUEST = ReserveRequest(**SAID)


def signed(ref: NodeRef = REF, issued: int = NOW) -> str:
    """The signature another library makes over bytes laid out by hand."""
    said = b"zs-reserve-v1\0" + struct.pack(">I", 58) + PAYER.encode() + struct.pack(">QQ", *ref)
    said += struct.pack(">I", 7) + b"smollm2" + struct.pack(">QQB", 1234, 512, 1)
    said += struct.pack(">I", 62) + RECIPIENT.encode() + struct.pack(">q", issued)
    return base64.b64encode(KEY.sign(hashlib.sha256(said).digest())).decode()


def code_of(data: bytes) -> str:
    with pytest.raises(ReserveError) as caught:
        decode_reserve(data)
    return caught.value.code


def test_what_was_not_said_is_left_out() -> None:
    plain = ReserveRequest(**{**SAID, "stream": False})
    assert json.loads(encode_reserve(plain)) == {**SAID, "stream": False}
    full = msgspec.structs.replace(
        REQUEST,
        input_bound_version=2,
        image_n=0,
        relaydesk_voucher="v-1",
        relaydesk_settle=msgspec.Raw(b'{"claims":[1]}'),
    )
    assert json.loads(encode_reserve(full)) == {
        **SAID,
        "input_bound_version": 2,
        "image_n": 0,
        "relaydesk_voucher": "v-1",
        "relaydesk_settle": {"claims": [1]},
    }
    found = decode_reserve(encode_reserve(full))
    assert found.bound_version == 2 and found.settle == b'{"claims":[1]}'
    assert decode_reserve(encode_reserve(REQUEST)) == REQUEST
    assert REQUEST.bound_version == 1 and REQUEST.settle == b""


def test_the_payer_signs_as_the_wire_says() -> None:
    made = sign_reserve(SIGN, REF, REQUEST, NOW)
    assert (made.payer_sig, made.payer_issued_at) == (signed(), NOW)
    assert payer_key(made) == PUBLIC
    check_payer(decode_reserve(encode_reserve(made)), REF, NOW)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "smollm3"},
        {"input_count": 1233},
        {"max_output_count": 513},
        {"stream": False},
        {"proxy_recipient": RECIPIENT.replace("rc8", "rc9")},
        {"payer_addr": encode_address(bytes(32))},
        {"payer_issued_at": NOW + 1},
        {"payer_sig": None},
        {"payer_sig": "x"},
        {"payer_issued_at": None},
    ],
)
def test_what_was_signed_cannot_be_changed(change: dict[str, Any]) -> None:
    made = sign_reserve(SIGN, REF, REQUEST, NOW)
    check_payer(msgspec.structs.replace(made, image_n=3, input_bound_version=2), REF, NOW)
    with pytest.raises(ReserveError) as caught:
        check_payer(msgspec.structs.replace(made, **change), REF, NOW)
    assert caught.value.code == "invalid_payer_sig"


def test_a_sibling_node_refuses_it() -> None:
    made = sign_reserve(SIGN, REF, REQUEST, NOW)
    for other in (NodeRef(42, 8), NodeRef(43, 7)):
        with pytest.raises(ReserveError):
            check_payer(made, other, NOW)


@pytest.mark.parametrize(("age", "good"), [(-31, False), (-30, True), (0, True), (90, True), (91, False)])
def test_the_window(age: int, good: bool) -> None:
    assert in_window(NOW - age, NOW) is good
    request = ReserveRequest(**SAID, payer_sig=signed(issued=NOW - age), payer_issued_at=NOW - age)
    if good:
        check_payer(request, REF, NOW)
    else:
        with pytest.raises(ReserveError, match="too old"):
            check_payer(request, REF, NOW)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"model": ""}, "invalid_reserve"),
        ({"model": "x" * 300}, "invalid_reserve"),
        ({"proxy_recipient": ""}, "invalid_reserve"),
        ({"input_count": 0}, "invalid_reserve"),
        ({"max_output_count": -1}, "invalid_reserve"),
        ({"input_count": 2**64}, "invalid_reserve"),
        ({"input_bound_version": 3}, "invalid_reserve"),
        ({"image_n": -1}, "invalid_reserve"),
        ({"payer_issued_at": 2**63}, "invalid_reserve"),
        # The first rule that is broken is the one that is said.
        ({"input_count": 0, "proxy_recipient": "x", "payer_addr": ""}, "invalid_reserve"),
        ({"proxy_recipient": "age1x", "payer_addr": ""}, "invalid_proxy_recipient"),
        ({"payer_addr": ""}, "missing_payer_addr"),
        ({"payer_addr": PAYER[:-1] + "A"}, "invalid_payer_addr"),
        ({"payer_addr": PAYER.lower()}, "invalid_payer_addr"),
        ({"input_count": 1.0}, "bad_reserve_envelope"),
        ({"input_count": True}, "bad_reserve_envelope"),
        ({"stream": 1}, "bad_reserve_envelope"),
        ({"model": None}, "bad_reserve_envelope"),
    ],
)
def test_each_rule_has_its_code(change: dict[str, Any], code: str) -> None:
    assert code_of(json.dumps({**SAID, **change}).encode()) == code


@pytest.mark.parametrize("name", ["model", "input_count", "max_output_count", "proxy_recipient"])
def test_what_is_missing(name: str) -> None:
    said = {key: value for key, value in SAID.items() if key != name}
    assert code_of(json.dumps(said).encode()) == "invalid_reserve"


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b'{"a":' * 9000, b'{"model":"\\ud800"}', b'{"input_count":NaN}']
)
def test_what_is_no_request(data: bytes) -> None:
    assert code_of(data) == "bad_reserve_envelope"


def test_unknown_fields_and_null_are_ignored() -> None:
    said = {**SAID, "zs_new": [1], "image_n": None, "relaydesk_settle": None, "payer_sig": None}
    assert decode_reserve(json.dumps(said).encode()) == REQUEST


@settings(max_examples=150, deadline=None)
@given(mutated({**SAID, "payer_sig": signed(), "payer_issued_at": NOW, "relaydesk_settle": {"a": 1}}))
def test_any_json_is_read_or_refused(value: dict[str, Any]) -> None:
    try:
        found = decode_reserve(json.dumps(value).encode())
    except ReserveError:
        return
    assert decode_reserve(encode_reserve(found)) == found
    same = all(value.get(name) == said for name, said in SAID.items())
    if found.payer_sig != signed() or found.payer_issued_at != NOW or not same:
        with pytest.raises(ReserveError):
            check_payer(found, REF, NOW)


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_mutated_bytes(count: int) -> None:
    made = sign_reserve(
        SIGN, REF, msgspec.structs.replace(REQUEST, relaydesk_settle=msgspec.Raw(b"[1]")), NOW
    )
    survives(decode_reserve, ReserveError, encode_reserve(made), count)

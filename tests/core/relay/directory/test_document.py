from __future__ import annotations

import base64
import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.directory.document import (
    MAX_BYTES,
    MAX_OPERATORS,
    Floor,
    Operator,
    check_forward,
    floor_of,
    floor_of_bytes,
    issue_document,
    open_document,
)
from relaydesk.core.relay.directory.record import read_record
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.text import safe_text
from tests.support.directory_world import ANN, BOB, DAY, EVE, KEEPER, NOW, OTHER, document, record
from tests.support.mutants import survives
from tests.support.mutate import mutated


def refused(data: bytes, key: str = KEEPER.address, now: int = NOW) -> str:
    with pytest.raises(Refused) as caught:
        open_document(data, key, now)
    assert caught.value.fault.message
    return caught.value.kind


def test_a_directory_by_another_library_is_read() -> None:
    found = open_document(document(evicts=(EVE,)), KEEPER.address, NOW)
    assert (found.version, found.issued_at, found.expires_at, found.name) == (
        7,
        NOW - 3600,
        NOW + 3600,
        "test",
    )
    assert [(each.owner, each.status, each.name) for each in found.operators] == [
        (ANN.address, "active", "ann"),
        (BOB.address, "active", "bob"),
        (EVE.address, "evicted", ""),
    ]
    assert [each.ref for each in found.records] == [(ANN.operator, 0), (BOB.operator, 0)]
    assert found.records[0].base_url == "https://ann0.example.org"
    assert found.refused == ()


def test_what_we_sign_is_what_the_design_says() -> None:
    entry = read_record(json.dumps(record(ANN)).encode(), NOW)
    made = issue_document(
        KEEPER.address,
        KEEPER.private.sign,
        version=3,
        issued_at=NOW,
        expires_at=NOW + DAY,
        operators=[Operator(ANN.address, "active", safe_text("ann"))],
        records=[entry],
        name="x",
    )
    envelope = json.loads(made)
    assert envelope == KEEPER.seal("directory", base64.b64decode(envelope["payload"]))
    assert json.loads(base64.b64decode(envelope["payload"]))["records"] == [record(ANN)]
    assert open_document(made, KEEPER.address, NOW).version == 3


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"x" * (MAX_BYTES + 1), "too_large"),
        (b"", "malformed"),
        (b"not json", "malformed"),
        (b"\xff\xfe", "malformed"),
        (b"[" * 200_000, "malformed"),
        (b"{}", "malformed"),
        (json.dumps({"payload": "e30=", "key": KEEPER.address, "sig": ""}).encode(), "bad_signature"),
        (json.dumps({"payload": "e30", "key": KEEPER.address, "sig": ""}).encode(), "malformed"),
        (document(signer=OTHER), "bad_signature"),
        (json.dumps(KEEPER.seal("record", {})).encode(), "bad_signature"),
        (json.dumps(KEEPER.seal("directory", {})).encode(), "malformed"),
        (json.dumps(KEEPER.seal("directory", b"[" * 200_000)).encode(), "malformed"),
        (document(OTHER), "wrong_key"),
        (document(expires_at=NOW), "expired"),
        (document(issued_at=NOW + 121, expires_at=NOW + 3600), "future"),
        (document(issued_at=NOW - 10, expires_at=NOW - 10 + DAY + 1), "malformed"),
        (document(issued_at=NOW, expires_at=NOW), "malformed"),
        (document(version=0), "malformed"),
        (document(version=2**53), "malformed"),
        (document(version="7"), "malformed"),
        (document(version=7.5), "malformed"),
        (document(operators=[{"owner": "A" * 58}]), "malformed"),
        (document(operators=[{"owner": ANN.address}] * (MAX_OPERATORS + 1)), "too_large"),
        (document(records=[{}]), "malformed"),
    ],
    ids=range(24),
)
def test_bad_directories(data: bytes, kind: str) -> None:
    assert refused(data) == kind


def test_a_flipped_bit_anywhere_in_the_payload_is_seen() -> None:
    envelope = json.loads(document())
    payload = bytearray(base64.b64decode(envelope["payload"]))
    payload[len(payload) // 2] ^= 1
    envelope["payload"] = base64.b64encode(payload).decode()
    assert refused(json.dumps(envelope).encode()) == "bad_signature"


def test_a_bad_record_costs_itself_only() -> None:
    bad = [
        record(BOB, signer=EVE),
        record(BOB, cert=record(BOB)),
        {"payload": "", "key": "", "sig": ""},
        record(BOB, operator_id=ANN.operator),
        record(BOB, issued_at=NOW + 9999),
    ]
    found = open_document(document(records=[*bad, record(ANN)]), KEEPER.address, NOW)
    assert [each.owner for each in found.records] == [ANN.address]
    assert found.refused


def test_of_duplicate_records_the_newest_counts() -> None:
    old, new = record(ANN, version=4), record(ANN, version=5, staging=True)
    for order in ([old, new, new], [new, old]):
        (found,) = open_document(document(records=order), KEEPER.address, NOW).records
        assert (found.version, found.staging) == (5, True)


def test_an_owner_that_stands_twice_is_evicted_if_one_says_so() -> None:
    (found,) = open_document(document(admits=(ANN,), evicts=(ANN,)), KEEPER.address, NOW).operators
    assert found.status == "evicted"


def test_hostile_text_is_made_safe() -> None:
    hostile = "\x1b[31m\u202eevil\u0000\n" + "x" * 999
    operators = [{"owner": ANN.address, "status": "active", "name": hostile}]
    found = open_document(document(name=hostile, operators=operators), KEEPER.address, NOW)
    for text in (found.name, found.operators[0].name):
        assert text.startswith("[31mevil xxx")
        assert len(text) == 64
        assert text.isprintable()


def test_a_refusal_repeats_no_value_of_the_document() -> None:
    with pytest.raises(Refused) as caught:
        open_document(document(version="\x1b[2Jsecret"), KEEPER.address, NOW)
    assert "secret" not in caught.value.sentence
    assert "$.version" in caught.value.sentence


def test_only_forward() -> None:
    held = open_document(document(), KEEPER.address, NOW)
    floor = floor_of(held)
    assert check_forward(held, None)
    assert check_forward(held, floor) is False
    cases: dict[str, dict[str, Any]] = {
        "conflict": {"name": "another of the same version"},
        "rollback": {"version": 6},
    }
    for kind, changes in cases.items():
        with pytest.raises(Refused) as caught:
            check_forward(open_document(document(**changes), KEEPER.address, NOW), floor)
        assert caught.value.kind == kind
    older = open_document(document(version=8, issued_at=NOW - 3601), KEEPER.address, NOW)
    with pytest.raises(Refused) as caught:
        check_forward(older, floor)
    assert caught.value.kind == "rollback"
    assert check_forward(open_document(document(version=8), KEEPER.address, NOW), floor)


def test_the_floor_of_ones_own_document_holds_after_it_expired() -> None:
    data = document(issued_at=5, expires_at=6)
    found = floor_of_bytes(data, KEEPER.address)
    assert (found.version, found.issued_at) == (7, 5)
    with pytest.raises(Refused):
        floor_of_bytes(data, OTHER.address)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3), st.binary(min_size=1, max_size=1)), max_size=12)
)
def test_no_order_of_documents_ever_goes_back(shown: list[tuple[int, int, bytes]]) -> None:
    floor: Floor | None = None
    base = open_document(document(), KEEPER.address, NOW)
    for version, issued, digest in shown:
        each = dataclasses.replace(base, version=version, issued_at=issued, digest=digest)
        try:
            newer = check_forward(each, floor)
        except Refused:
            continue
        if newer:
            assert floor is None or (version > floor.version and issued >= floor.issued_at)
            floor = floor_of(each)
        else:
            assert floor is not None
            assert (floor.version, floor.digest) == (version, digest)


PAYLOAD = json.loads(base64.b64decode(json.loads(document(evicts=(EVE,)))["payload"]))


def check_mutated(payload: Any) -> None:
    try:
        found = open_document(json.dumps(KEEPER.seal("directory", payload)).encode(), KEEPER.address, NOW)
    except Refused:
        return
    assert found.expires_at - found.issued_at <= DAY
    assert len({(each.ref, each.owner) for each in found.records}) == len(found.records)


@given(mutated(PAYLOAD))
def test_a_changed_payload_is_taken_or_refused(payload: Any) -> None:
    check_mutated(payload)


def read_signed(data: bytes) -> None:
    open_document(json.dumps(KEEPER.seal("directory", data)).encode(), KEEPER.address, NOW)


def test_mutated_payloads_and_documents() -> None:
    survives(read_signed, Refused, json.dumps(PAYLOAD).encode(), 400)
    survives(lambda data: open_document(data, KEEPER.address, NOW), Refused, document(), 2000)


@pytest.mark.long
def test_ten_thousand_mutated_payloads_and_documents() -> None:
    survives(read_signed, Refused, json.dumps(PAYLOAD).encode(), 10_000)
    survives(lambda data: open_document(data, KEEPER.address, NOW), Refused, document(), 10_000)


@given(st.binary(max_size=200) | st.just(document()).flatmap(
    lambda data: st.tuples(st.integers(0, len(data) - 1), st.binary(max_size=4)).map(
        lambda change: data[: change[0]] + change[1] + data[change[0] + 1 :]
    )
))  # fmt: skip
def test_any_bytes_are_taken_or_refused(data: bytes) -> None:
    try:
        found = open_document(data, KEEPER.address, NOW)
    except Refused:
        return
    assert found.digest == open_document(document(), KEEPER.address, NOW).digest

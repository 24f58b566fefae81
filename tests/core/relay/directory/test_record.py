from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given

from relaydesk.core.relay.directory.certificate import read_certificate
from relaydesk.core.relay.directory.record import MAX_BYTES, Rank, issue_record, read_record
from relaydesk.core.relay.directory.refusal import Refused
from tests.support.directory_world import ANN, BOB, DAY, EVE, NOW, certificate, node_key, record
from tests.support.mutants import survives
from tests.support.mutate import mutated


def read(made: dict[str, str], now: int = NOW) -> Any:
    return read_record(json.dumps(made).encode(), now)


def test_a_record_of_the_nodes_key_or_the_owners() -> None:
    for signer in (None, ANN):
        found = read(record(ANN, 4, signer=signer, staging=True))
        assert found.ref == (ANN.operator, 4)
        assert (found.owner, found.version, found.staging, found.status) == (ANN.address, 1, True, "active")
        assert found.certificate.signing == node_key(ANN, 4).address
        assert found.base_url == "https://ann4.example.org"


def test_what_we_sign_is_what_the_design_says() -> None:
    cert = read_certificate(json.dumps(certificate(ANN, 2)).encode(), NOW)
    key = node_key(ANN, 2)
    made = issue_record(
        cert, key.address, key.private.sign, version=9, issued_at=NOW, base_url="https://a.example.org"
    )
    envelope = json.loads(made.encode())
    assert envelope == key.seal("record", base64.b64decode(envelope["payload"]))
    payload = json.loads(base64.b64decode(envelope["payload"]))
    assert payload["certificate"] == certificate(ANN, 2)
    assert (payload["operator_id"], payload["node_id"]) == (ANN.operator, 2)
    assert read(envelope).version == 9


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (record(ANN, signer=EVE), "wrong_key"),
        (record(ANN, 1, signer=node_key(ANN, 0)), "wrong_key"),
        (record(ANN, cert=certificate(BOB)), "wrong_key"),
        (record(ANN, cert=certificate(ANN, 1), signer=ANN), "wrong_key"),
        (record(ANN, operator_id=ANN.operator + 1), "wrong_key"),
        (record(ANN, cert=certificate(ANN, signer=EVE)), "wrong_key"),
        (record(ANN, cert=certificate(ANN) | {"sig": certificate(BOB)["sig"]}), "bad_signature"),
        (record(ANN) | {"sig": record(BOB)["sig"]}, "bad_signature"),
        (record(ANN) | {"key": "A" * 58}, "malformed"),
        (record(ANN, cert=certificate(ANN, expires_at=NOW)), "expired"),
        (record(ANN, cert=certificate(ANN, issued_at=NOW + 500)), "future"),
        (record(ANN, cert=certificate(ANN, expires_at=NOW + 2000 * DAY)), "malformed"),
        (record(ANN, issued_at=NOW + 500), "future"),
        (record(ANN, version=0), "malformed"),
        (record(ANN, version=2**60), "malformed"),
        (record(ANN, version=True), "malformed"),
        (record(ANN, node_id=-1), "wrong_key"),
        (record(ANN, status="gone"), "malformed"),
        (record(ANN, staging="no"), "malformed"),
        (record(ANN, cert=node_key(ANN).seal("certificate", {})), "malformed"),
        (record(ANN, base_url="x" * MAX_BYTES), "too_large"),
    ],
    ids=range(21),
)
def test_bad_records(made: dict[str, str], kind: str) -> None:
    with pytest.raises(Refused) as caught:
        read(made)
    assert caught.value.kind == kind


def test_a_signature_of_one_kind_is_none_of_another() -> None:
    payload = base64.b64decode(record(ANN)["payload"])
    for other in ("certificate", "directory"):
        with pytest.raises(Refused) as caught:
            read(node_key(ANN).seal(other, payload))
        assert caught.value.kind == "bad_signature"


def test_a_later_certificate_outdoes_a_higher_version() -> None:
    old_key = read(record(ANN, version=2**53 - 1))
    new_key = read(record(ANN, version=1, cert=certificate(ANN, issued_at=NOW - 100)))
    assert new_key.rank > old_key.rank
    assert Rank(1, 2) > Rank(1, 1)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"signing": "x"}, "malformed"),
        ({"signing": ANN.address}, "malformed"),
        ({"node_id": 2**53}, "malformed"),
        ({"expires_at": NOW - 2 * DAY}, "malformed"),
    ],
)
def test_bad_certificates(changes: dict[str, Any], kind: str) -> None:
    with pytest.raises(Refused) as caught:
        read_certificate(json.dumps(certificate(ANN, **changes)).encode(), NOW)
    assert caught.value.kind == kind


PAYLOAD = json.loads(base64.b64decode(record(ANN)["payload"]))


def check_mutated(payload: Any) -> None:
    try:
        found = read(node_key(ANN).seal("record", payload))
    except Refused:
        return
    assert found.ref == (ANN.operator, 0)


@given(mutated(PAYLOAD))
def test_a_changed_record_is_taken_or_refused(payload: Any) -> None:
    check_mutated(payload)


def read_signed(data: bytes) -> None:
    read(node_key(ANN).seal("record", data))


def test_mutated_payloads_and_records() -> None:
    survives(read_signed, Refused, json.dumps(PAYLOAD).encode(), 400)
    survives(lambda data: read_record(data, NOW), Refused, json.dumps(record(ANN)).encode(), 2000)


@pytest.mark.long
def test_ten_thousand_mutated_payloads_and_records() -> None:
    survives(read_signed, Refused, json.dumps(PAYLOAD).encode(), 10_000)
    survives(lambda data: read_record(data, NOW), Refused, json.dumps(record(ANN)).encode(), 10_000)

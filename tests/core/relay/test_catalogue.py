from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import ERRORS
from relaydesk.core.relay.catalogue import (
    CATALOGUE,
    MOST_ERROR_BYTES,
    NO_REPORT,
    ODD_CODE,
    RELAY_REFUSALS,
    UPSTREAM_UNREACHABLE,
    WireError,
    read_error,
    wire_error,
)
from tests.support.mutate import JSON


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_code_makes_a_body_that_reads_back(code: str) -> None:
    rule = CATALOGUE[code]
    assert 400 <= rule.status <= 503 and rule.places
    body = json.loads(wire_error(code, "so it is"))
    assert body == {"error": {"message": "so it is", "type": rule.type, "code": code}}
    assert read_error(wire_error(code, "so it is")).code == code


def test_nobody_here_answers_504() -> None:
    assert 504 not in {rule.status for rule in CATALOGUE.values()}


def test_a_relays_own_codes() -> None:
    own = {code for code, rule in CATALOGUE.items() if "relay" in rule.places}
    assert own == RELAY_REFUSALS | {UPSTREAM_UNREACHABLE}
    assert {code: CATALOGUE[code].status for code in own} == {
        "relay_bad_target": 400, "relay_bad_path": 400, "relay_bad_method": 400, "relay_unknown_target": 404,
        "relay_build_request": 502, "relay_busy": 503, "relay_upstream_unreachable": 502,
    }  # fmt: skip


def test_what_our_own_users_meet_has_the_wires_status() -> None:
    for code, rule in CATALOGUE.items():
        if "caller" in rule.places:
            assert ERRORS[code].status == rule.status


def test_an_error_carries_what_http_needs() -> None:
    error = WireError("relay_busy", "all circuits are taken")
    assert (error.code, error.status, error.type, error.retry_after) == ("relay_busy", 503, "relay_busy", 2)
    assert json.loads(error.body())["error"]["message"] == "all circuits are taken"
    assert WireError("no_capacity", "full", retry_after=9).retry_after == 9
    with pytest.raises(ValueError, match="made_up"):
        WireError("made_up", "x")


def test_the_nodes_time_stands_in_both_places() -> None:
    body = WireError("invalid_payer_sig", "the stamp is old", node_time=1_700_000_000).body()
    error = json.loads(body)["error"]
    assert error["node_time"] == 1_700_000_000 and "node_time=1700000000" in error["message"]
    assert read_error(body).node_time == 1_700_000_000
    only_text = b'{"error": {"code": "invalid_payer_sig", "message": "late; node_time=17, sorry"}}'
    assert read_error(only_text).node_time == 17
    for silly in (b'"node_time": true', b'"node_time": 1e99', b'"node_time": -4', b'"node_time": "12"'):
        assert read_error(b'{"error": {"code": "x", %s}}' % silly).node_time is None


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>502</html>", b"null", b"[]", b'"x"', b"{}", b'{"error": null}', b'{"error": "busy"}',
     b'{"error": {}}', b'{"error": {"code": null}}', b'{"error": {"code": 7}}', b'{"error": {"code": ""}}',
     b'{"error": {"code": ["relay_busy"]}}', b'{"code": "relay_busy"}', b'{"error": {"code": "relay_busy"}',
     b"\xff\xfe", b'{"error": {"code": "\xff"}}', b"[" * 60_000, b'{"x":' * 11_000,
     b'{"error": {"code": "relay_busy"}}' + b" " * MOST_ERROR_BYTES],
)  # fmt: skip
def test_what_has_no_code(body: bytes) -> None:
    assert read_error(body).code == ""


def test_one_wrong_field_does_not_lose_the_code() -> None:
    body = b'{"error": {"code": "relay_busy", "message": {"a": 1}, "node_time": []}, "more": [1, 2]}'
    assert read_error(body).code == "relay_busy"
    deep = b'{"error": {"code": "relay_busy", "message": ' + b"[" * 50_000 + b"]" * 10
    assert read_error(deep) == NO_REPORT


@pytest.mark.parametrize(
    "code", ["relay_busy\\u200b", " relay_busy", "relay_busy\\n", "\\u001b[2J", "x" * 65, "é"]
)
def test_an_odd_code_counts_as_a_code_and_equals_none(code: str) -> None:
    assert read_error(b'{"error": {"code": "%s"}}' % code.encode()).code == ODD_CODE
    assert ODD_CODE not in CATALOGUE


def test_a_message_of_others_is_made_safe() -> None:
    report = read_error(b'{"error": {"code": "x", "message": "a\\u001b[31mb\\u202e%s"}}' % (b"c" * 999))
    assert "\x1b" not in report.message and "\u202e" not in report.message and len(report.message) <= 256


@given(JSON)
def test_any_json_has_an_answer(value: object) -> None:
    for body in (value, {"error": value}, {"error": {"code": value, "message": value}}):
        report = read_error(json.dumps(body).encode())
        assert report.code == "" or report.code.isascii()


@given(st.binary(max_size=200))
def test_any_bytes_have_an_answer(body: bytes) -> None:
    read_error(body)


def test_ten_thousand_mutations_raise_nothing() -> None:
    rng = random.Random(2)
    good = WireError("invalid_payer_sig", "the stamp is old", node_time=1_700_000_000).body()
    for _ in range(10_000):
        body = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(body))
            body[place : place + rng.randint(0, 3)] = rng.choice(
                [b"", b'"', b"{", b"\x00", b"\xff", b"\\u", b"9"]
            )
        read_error(bytes(body))

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.hopcheck.dialback import (
    HEADERS,
    MOST_ASK,
    MOST_HEADERS,
    MOST_VALUE,
    Question,
    answer,
    ask,
    read_answer,
    read_ask,
)
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.relay.directory.signing_key import SigningKey
from relaydesk.core.relay.ref import NodeRef

ASKER, PEER = SigningKey("node", bytes([1] * 32)), SigningKey("node", bytes([2] * 32))
REF, NOW = NodeRef(7, 1), 1_764_500_000


def asked(to: str = PEER.address, at: int = NOW) -> bytes:
    return ask(REF, ASKER.address, ASKER.sign, to, at)


def test_a_question_says_who_asks_and_who_signed() -> None:
    assert read_ask(asked(), PEER.address, NOW) == Question(REF, ASKER.address)


def test_a_question_to_another_or_of_another_time_is_none() -> None:
    with pytest.raises(Refused, match="another node"):
        read_ask(asked(ASKER.address), PEER.address, NOW)
    for late in (-121, 121):
        with pytest.raises(Refused, match="not of this moment"):
            read_ask(asked(), PEER.address, NOW + late)
    read_ask(asked(), PEER.address, NOW + 120)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_what_was_changed_on_the_way_is_refused(at: int, bits: int) -> None:
    outer = json.loads(asked())
    payload = bytearray(base64.b64decode(outer["payload"]))
    payload[at % len(payload)] ^= bits
    outer["payload"] = base64.b64encode(bytes(payload)).decode()
    with pytest.raises(Refused):
        read_ask(json.dumps(outer).encode(), PEER.address, NOW)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_question_or_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        read_ask(data, PEER.address, NOW)


def test_a_question_is_short() -> None:
    assert len(asked()) < MOST_ASK
    with pytest.raises(Refused, match="larger"):
        read_ask(asked() + b" " * MOST_ASK, PEER.address, NOW)


def test_an_answer_has_status_and_headers_and_nothing_else() -> None:
    data = answer(400, (("X-Zs-Relay-Hop", "1"),))
    assert set(json.loads(data)) == {"status", "headers", "problem", "kind"}
    found = read_answer(data, "https://me.example", "node 9:0")
    assert (found.status, found.headers, found.request) == (400, (("X-Zs-Relay-Hop", "1"),), HEADERS)
    assert found.url == "https://me.example/v1/zs/relay"
    gone = read_answer(answer(0, (), "tls", "no TLS"), "https://me.example", "node 9:0")
    assert (gone.status, gone.kind, gone.problem) == (0, "tls", "no TLS (seen by node 9:0)")


def test_an_answer_is_bounded_at_both_ends() -> None:
    many = tuple((f"H{at}", "x" * 5000) for at in range(500))
    found = json.loads(answer(200, many))
    assert len(found["headers"]) == MOST_HEADERS
    assert {len(value) for _, value in found["headers"]} == {MOST_VALUE}
    with pytest.raises(ValueError, match="too long"):
        read_answer(b" " * 70_000, "x", "y")


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="peer's answer"):
        read_answer(data, "x", "y")


@pytest.mark.parametrize("status", [-1, 600, 10**9])
def test_a_status_that_is_none_is_refused(status: int) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        read_answer(json.dumps({"status": status}).encode(), "x", "y")


def test_a_kind_that_is_none_is_a_broken_answer() -> None:
    assert read_answer(b'{"status":0,"kind":"nonsense"}', "x", "y").kind == "broken"

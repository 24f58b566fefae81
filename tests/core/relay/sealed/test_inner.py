"""The inner frame: laid out by hand, and everything that is none."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.sealed.envelope import SealedError
from relaydesk.core.relay.sealed.inner import Inner, read_inner, write_inner
from tests.support.mutants import survives

TAG = bytes(range(32))
SAID: dict[str, Any] = {
    "reply_to_public_key": "age1x",
    "algorand_tx_id": "TX",
    "ticket_id": "T1",
    "admission_tag": base64.b64encode(TAG).decode(),
}


def frame(header: object, body: bytes = b"body") -> bytes:
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    return b"zsrq\x01" + len(data).to_bytes(4, "big") + data + body


def test_what_is_written() -> None:
    made = write_inner(Inner("age1x", "TX", "T1", TAG, b"body", b'{"v":1}'))
    assert made[:5] == b"zsrq\x01" and made.endswith(b"body")
    length = int.from_bytes(made[5:9], "big")
    assert json.loads(made[9 : 9 + length]) == {**SAID, "relaydesk_open": {"v": 1}}
    assert len(made) == 9 + length + 4
    bare = write_inner(Inner("age1x", "TX"))
    assert json.loads(bare[9:]) == {"reply_to_public_key": "age1x", "algorand_tx_id": "TX"}


@pytest.mark.parametrize("body", [b"", b"zsrq", b"\x00\xff" * 50])
def test_what_is_read(body: bytes) -> None:
    assert read_inner(frame(SAID, body)) == Inner("age1x", "TX", "T1", TAG, body)
    said = {**SAID, "x": [1], "relaydesk_open": {"a": [1, "é"]}}
    found = read_inner(frame(said, body))
    assert json.loads(found.opening) == {"a": [1, "é"]} and found.body == body
    none = {**SAID, "ticket_id": None, "admission_tag": None, "relaydesk_open": None}
    assert read_inner(frame(none, body)) == Inner("age1x", "TX", body=body)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"zsrq\x01\0\0\0",
        b"zsrq\x01\0\0\0\0",
        frame(SAID).replace(b"zsrq", b"zsrQ", 1),
        frame(SAID).replace(b"\x01", b"\x02", 1),
        b"zsrq\x01\0\0\0\x03{}",
        frame(json.dumps(SAID).encode(), b"").replace(
            bytes([len(json.dumps(SAID))]), bytes([len(json.dumps(SAID)) + 1]), 1
        ),
        b"zsrq\x01\xff\xff\xff\xff" + json.dumps(SAID).encode(),
        frame(json.dumps(SAID).encode().ljust(65537)),
        frame(b"[]"),
        frame(b"null"),
        frame(b"{" * 60000),
        frame(json.dumps(SAID).encode() + b"{}"),
        frame({**SAID, "admission_tag": base64.b64encode(TAG[:31]).decode()}),
        frame({**SAID, "admission_tag": base64.b64encode(TAG + b"x").decode()}),
        frame({**SAID, "admission_tag": "x"}),
        frame({**SAID, "admission_tag": 5}),
        frame({**SAID, "algorand_tx_id": "a\0b"}),
        frame({**SAID, "ticket_id": "a\nb"}),
        frame({**SAID, "ticket_id": "é"}),
        frame({**SAID, "ticket_id": "a" * 257}),
        frame({**SAID, "reply_to_public_key": None}),
        frame({"algorand_tx_id": "TX"}),
        frame({"reply_to_public_key": "age1x"}),
    ],
)
def test_what_is_refused(data: bytes) -> None:
    with pytest.raises(SealedError):
        read_inner(data)


def test_a_header_may_be_as_long_as_the_wire_allows() -> None:
    assert read_inner(frame(json.dumps(SAID).encode().ljust(65536))).body == b"body"
    with pytest.raises(ValueError, match="too long"):
        write_inner(Inner("age1x", "TX", opening=b'"' + b"a" * 65536 + b'"'))


def test_no_prompt_and_no_tag_in_a_repr() -> None:
    assert repr(Inner("r", "x", "t", TAG, b"prompt", b"1")) == "Inner(reply_to='r', tx_id='x', ticket_id='t')"


@given(
    st.text("AGE1abc=+/", max_size=60), st.text("ABC234", max_size=60), st.binary(max_size=200), st.booleans()
)
def test_what_is_written_is_read(reply: str, tx: str, body: bytes, tagged: bool) -> None:
    inner = Inner(reply, tx, "T" if tagged else "", TAG if tagged else b"", body, b"[1]" if tagged else b"")
    assert read_inner(write_inner(inner)) == inner


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_mutated_bytes(count: int) -> None:
    survives(read_inner, SealedError, frame({**SAID, "relaydesk_open": {"a": 1}}), count)

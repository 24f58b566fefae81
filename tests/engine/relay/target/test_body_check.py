"""A body held against its ticket."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.records.ticket import Ticket
from relaydesk.engine.relay.target.body_check import check_body
from relaydesk.engine.relay.target.tickets import Held


def held(input_count: int = 100, *, version: int = 1, window: int = 4096, output: int = 10) -> Held:
    ticket = Ticket(
        ticket_id="", operator_id=1, node_id=0, input_count=input_count, max_output_count=output,
        input_rate=0, output_rate=0, max_price=0, min_price=0, expires_at=0, model="m", commit_k="",
    )  # fmt: skip
    return Held(ticket, bytes(32), "r", "p", version, window)


def said(body: bytes, ticket: Held, *, event_stream: bool = False) -> tuple[bool, str]:
    found = check_body(body, ticket, event_stream=event_stream)
    return found.stream, "" if found.refusal is None else found.refusal.code


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (b'{"model":"m"}', (False, "")),
        (b'{"model":"m","stream":true}', (True, "")),
        (b'{"model":"m","stream":"true"}', (False, "")),
        (b'{"model":"n","stream":true}', (True, "model_mismatch")),
        (b'{"stream":true}', (False, "model_mismatch")),
        (b'{"model":null}', (False, "model_mismatch")),
        (b"[]", (False, "model_mismatch")),
        (b"", (False, "model_mismatch")),
    ],
)
def test_model_and_stream(body: bytes, want: tuple[bool, str]) -> None:
    assert said(body, held()) == want


def test_accept_counts_only_where_the_body_cannot_be_read() -> None:
    assert said(b"?", held(), event_stream=True) == (True, "model_mismatch")
    assert said(b'{"model":"m"}', held(), event_stream=True) == (False, "")


def body_of(size: int) -> bytes:
    return b'{"model":"m","x":"' + b"y" * (size - 20) + b'"}'


def test_a_tenth_more_than_reserved_is_borne() -> None:
    # 156 bytes are 78 tokens and 32 besides: 110, a tenth more than 100.
    assert said(body_of(156), held()) == (False, "")
    assert said(body_of(157), held()) == (False, "input_budget_exceeded")


def test_measured_as_the_caller_measures_what_the_window_caps() -> None:
    capped = held(90, window=100, output=10)
    assert said(body_of(1000), capped) == (False, "")


def image(width: int, height: int) -> str:
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4) + height.to_bytes(4) + b"\x08\x02\0\0\0"
    return "data:image/png;base64," + base64.b64encode(head).decode()


@pytest.mark.parametrize(("version", "code"), [(1, "input_budget_exceeded"), (2, "")])
def test_by_the_version_that_was_reserved_with(version: int, code: str) -> None:
    """A small image: by version 1 it is a large one unless its size is told, version 2 reads it."""
    part: dict[str, Any] = {"type": "image_url", "image_url": {"url": image(64, 64)}}
    body = msgspec.json.encode({"model": "m", "messages": [{"role": "user", "content": [part]}]})
    assert said(body, held(400, version=version)) == (False, code)


@given(st.binary(max_size=200))
def test_any_bytes_are_looked_at(body: bytes) -> None:
    check_body(body, held(), event_stream=False)

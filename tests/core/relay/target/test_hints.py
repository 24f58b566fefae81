"""The ``provider`` object, read field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.target.hints import MAX_REFERENCES, Hints, parse_hints
from relaydesk.core.relay.target.reference import Reference
from tests.support.mutate import JSON, mutated

FULL = {
    "only": ["7", "8:1"],
    "ignore": ["9"],
    "order": ["8"],
    "allow_fallbacks": False,
    "max_price": {"input": 0.07, "output": 2},
    "require_tools": True,
    "sort": " Latency ",
    "relay": "REQUIRED",
}


def parse(**fields: Any) -> Hints:
    return parse_hints(json.dumps(fields).encode())


def test_every_field() -> None:
    assert parse(**FULL) == Hints(
        only=(Reference(7), Reference(8, 1)),
        ignore=(Reference(9),),
        order=(Reference(8),),
        allow_fallbacks=False,
        max_input_rate=70_000,
        max_output_rate=2_000_000,
        require_tools=True,
        sort="latency",
        relay="required",
    )


@pytest.mark.parametrize("data", [b"", b"null", b"{}", b'{"zdr":true}', b'{"only":null,"max_price":null}'])
def test_nothing_said_means_the_defaults(data: bytes) -> None:
    assert parse_hints(data) == Hints()
    assert Hints().allow_fallbacks


@pytest.mark.parametrize(
    ("field", "value", "at"),
    [
        ("only", "7", "only"),
        ("ignore", {}, "ignore"),
        ("order", 3, "order"),
        ("allow_fallbacks", "no", "allow_fallbacks"),
        ("allow_fallbacks", 0, "allow_fallbacks"),
        ("max_price", [], "max_price"),
        ("max_price", {"input": "1", "output": 2}, "max_price.input"),
        ("max_price", {"input": 10**99, "output": 2}, "max_price.input"),
        ("require_tools", 1, "require_tools"),
        ("sort", "best", "sort"),
        ("relay", None.__class__.__name__, "relay"),
        ("only", ["7"] * (MAX_REFERENCES + 1), "only"),
    ],
)
def test_one_bad_field_never_discards_the_rest(field: str, value: Any, at: str) -> None:
    good = parse(**FULL)
    hints = parse(**{**FULL, field: value})
    assert hints.unread == (f"provider.{at}",)
    others = ("only", "ignore", "order", "max_output_rate", "sort", "relay", "allow_fallbacks")
    changed = {name for name in others if getattr(hints, name) != getattr(good, name)}
    assert changed <= {field, "max_output_rate" if value == [] else field}


def test_bad_entries_are_named_and_the_others_kept() -> None:
    hints = parse(only=["7", "x", 3, None, "8:1"])
    assert hints.only == (Reference(7), Reference(8, 1))
    assert hints.unread == ("provider.only[1]", "provider.only[2]", "provider.only[3]")


@pytest.mark.parametrize("price", [0, -1, -0.5, 1e-12])
def test_a_ceiling_of_nothing(price: float) -> None:
    hints = parse(max_price={"input": price})
    # Less than the smallest rate there is, it admits none; 0 and less is no ceiling.
    assert hints.max_input_rate == (0 if price > 0 else None)
    assert hints.unread == ()


def test_what_is_no_object() -> None:
    for data in (b"[]", b"3", b'"only"', b"{", b"[" * 100_000, b"\xff"):
        assert parse_hints(data) == Hints(unread=("provider",))


def test_who_is_in_and_who_is_out() -> None:
    hints = parse(only=["7", "8"], ignore=["8:1"], order=["7:2"], allow_fallbacks=False)
    admitted = [
        ref for ref in (NodeRef(7, 0), NodeRef(8, 0), NodeRef(8, 1), NodeRef(9, 0)) if hints.admits(ref)
    ]
    assert admitted == [NodeRef(7, 0), NodeRef(8, 0)]
    assert hints.pins_out(NodeRef(7, 0)) and not hints.pins_out(NodeRef(7, 2))
    assert not parse(order=["7:2"]).pins_out(NodeRef(7, 0))


@given(mutated(FULL))
def test_any_object_is_read(provider: dict[str, Any]) -> None:
    assert isinstance(parse_hints(json.dumps(provider).encode()), Hints)


@pytest.mark.long
@settings(max_examples=10_000)
@given(JSON, st.binary(max_size=8), st.integers(0, 200))
def test_ten_thousand_objects(value: Any, noise: bytes, at: int) -> None:
    data = json.dumps({**FULL, "only": value, "max_price": {"input": value}}).encode()
    parse_hints(data[:at] + noise + data[at + len(noise) :])
    parse_hints(data)

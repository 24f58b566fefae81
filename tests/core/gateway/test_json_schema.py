from __future__ import annotations

import json
from typing import Any

import jsonschema
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.fields import ENVELOPE, RANGES, Envelope, check_ranges
from relaydesk.core.gateway.json_schema import (
    TEXT,
    WHOLE,
    either,
    listed,
    literal,
    nullable,
    of_envelope,
    of_type,
    shape,
)


class Inner(msgspec.Struct):
    """A note of the code's."""

    x: int


class Body(msgspec.Struct):
    name: str | None = None
    count: int | None = None
    given: msgspec.Raw = msgspec.Raw()
    loose: msgspec.Raw = msgspec.Raw()
    inner: Inner | None = None
    many: list[Inner] | None = None


SCHEMA = of_envelope(Body, {"given": TEXT}, required=("given",), ranges={"count": (1, 5)})


def holds(value: Any, schema: dict[str, Any] = SCHEMA) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


def test_an_envelope_is_described_by_its_types() -> None:
    assert holds({"given": "x"})
    assert holds(
        {"given": "x", "name": None, "count": 5, "inner": {"x": 1}, "many": [{"x": 2}], "loose": [{}]}
    )
    assert holds({"given": "x", "unknown": 1})
    for wrong in (
        {}, {"given": None}, {"given": 1}, {"given": "x", "name": 1}, {"given": "x", "count": 6},
        {"given": "x", "count": 0}, {"given": "x", "inner": {}}, {"given": "x", "many": [1]}, [],
    ):  # fmt: skip
        assert not holds(wrong), wrong
    assert "$ref" not in json.dumps(SCHEMA)
    assert "note of the code" not in json.dumps(SCHEMA)


def test_the_small_words() -> None:
    schema = shape({"a": listed(either(TEXT, WHOLE), least=1)}, {"b": nullable(literal("x", "y"))})
    assert holds({"a": ["t", 1]}, schema)
    assert holds({"a": [1], "b": None, "c": 3}, schema)
    for wrong in ({"a": []}, {"a": [None]}, {"a": [1], "b": "z"}, {"b": "x"}):
        assert not holds(wrong, schema), wrong
    assert of_type(int | None) == {"anyOf": [{"type": "integer"}, {"type": "null"}]}


NUMBERS = st.none() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(sorted(RANGES)), value=NUMBERS)
def test_bounds_are_those_of_the_check(name: str, value: Any) -> None:
    """Both directions: what the schema allows is taken, what it forbids is refused."""
    schema = of_envelope(Envelope, {}, ranges=RANGES)
    body = json.dumps({name: value, "logprobs": True}).encode()
    try:
        check_ranges(ENVELOPE.decode(body))
        taken = True
    except (PeerError, msgspec.MsgspecError):
        taken = False
    # JSON Schema takes 2.0 for a whole number, msgspec does not.
    whole = schema["properties"][name]["anyOf"][0]["type"] == "integer"
    if not (whole and isinstance(value, float)):
        assert taken is holds(json.loads(body), schema)

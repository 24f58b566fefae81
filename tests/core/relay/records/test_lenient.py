"""Foreign JSON field by field: one wrong field costs itself."""

from __future__ import annotations

from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from relaydesk.core.relay.records.lenient import Lenient, items, members, read, read_fields
from relaydesk.core.text import SafeText
from tests.support.mutate import JSON


class Inner(Lenient, frozen=True, kw_only=True):
    a: int = 1
    b: SafeText | None = None


class Outer(Lenient, frozen=True, kw_only=True):
    must: int
    count: Annotated[int, Meta(ge=0, le=9)] = 5
    inner: Inner | None = None
    words: tuple[SafeText, ...] = ()

    __fallback__ = {"must": -1}


def outer(data: bytes, skip: frozenset[str] = frozenset()) -> Outer:
    found = members(data)
    assert found is not None
    return read_fields(Outer, found, skip)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"{}", Outer(must=-1)),
        (b'{"must":true,"count":10}', Outer(must=-1)),
        (b'{"must":null,"count":null,"inner":null}', Outer(must=-1)),
        (b'{"must":3,"count":1.0}', Outer(must=3)),
        (b'{"count":9,"inner":{"a":"x","b":"y"}}', Outer(must=-1, count=9, inner=Inner(b=SafeText("y")))),
        (b'{"inner":[],"words":["a",3]}', Outer(must=-1)),
        (b'{"words":["a\\u001b[2J","b"]}', Outer(must=-1, words=(SafeText("a[2J"), SafeText("b")))),
        (b'{"must":1,"x":{"y":[1e999]}}', Outer(must=1)),
    ],
)
def test_what_fits_is_taken(data: bytes, wanted: Outer) -> None:
    assert outer(data) == wanted


def test_what_is_read_otherwise_is_left() -> None:
    assert outer(b'{"must":3,"count":4}', frozenset({"count"})) == Outer(must=3)


def test_text_is_made_safe_and_cut() -> None:
    found = outer(b'{"inner":{"b":"%s"}}' % (b"a" * 5000)).inner
    assert found is not None and isinstance(found.b, SafeText) and len(found.b) == 256


@pytest.mark.parametrize("data", [b"", b"[]", b"1", b"null", b"{", b'{"a":' * 9000, b"\xff", b'{"\xff":1}'])
def test_no_object_has_no_members(data: bytes) -> None:
    assert members(data) is None


def test_lists() -> None:
    assert [bytes(raw) for raw in items(b' [1, {"a":2} ,3]', 2)] == [b"1", b'{"a":2}']
    for data in (b"", b"{}", b"[1", b"null"):
        assert items(data, 5) == []
    assert read(int, b"true") is None and read(int, b" 7 ") == 7


@given(st.dictionaries(st.sampled_from(["must", "count", "inner", "words"]), JSON))
def test_any_json_is_read(value: dict[str, object]) -> None:
    import json

    found = outer(json.dumps(value).encode())
    assert 0 <= found.count <= 9

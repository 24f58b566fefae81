"""Image parts are found wherever they stand, and only they."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.relay.bound.image_parts import (
    MAX_DEPTH,
    MAX_PARTS,
    MAX_VALUES,
    find_image_parts,
    url_of,
)
from tests.support.mutate import JSON

PART = {"type": "image_url", "image_url": {"url": "x"}}


def found(body: bytes) -> list[dict[str, Any]] | None:
    images = find_image_parts(body)
    return None if images is None else list(images.parts)


def nested(depth: int, inner: str) -> bytes:
    return ("[" * depth + inner + "]" * depth).encode()


def by_recursion(value: Any) -> list[Any]:
    """The rule once more, as plainly as it can be said."""
    if isinstance(value, list):
        return [part for child in value for part in by_recursion(child)]
    if not isinstance(value, dict):
        return []
    if str(value.get("type")).lower() in ("image_url", "input_image") and isinstance(value["type"], str):
        return [value]
    return [part for child in value.values() for part in by_recursion(child)]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b"", 0),
        (b"not json", 0),
        (b'{"text":"image_url"}', 0),
        (b'{"type":"image_url"}', 1),
        (b'{"type":"IMAGE_Url"}', 1),
        (b'{"type":"Input_Image"}', 1),
        (b'{"type":"\\u0069mage\\u005furl"}', 1),
        (b'{"\\u0074ype":"image_url"}', 1),
        (b'{"Type":"image_url"}', 0),
        (b'{"type":["image_url"]}', 0),
        (b'{"type":"image_url","inner":[{"type":"image_url"}]}', 1),
        (b'{"a":{"b":[1,{"type":"input_image"},{"type":"image_url"}]}}', 2),
        (b'{"type":"text","type":"image_url"}', 1),
    ],
)
def test_where_images_stand(body: bytes, count: int) -> None:
    assert len(found(body) or []) == count


@pytest.mark.parametrize(
    "tail", [b'"\\ud800"', b'"\xff\xfe"', b"1e309", b"-1e309", b"1" * 400, b"0." + b"1" * 5000]
)
def test_what_others_take_for_json(tail: bytes) -> None:
    assert len(found(b'[{"type":"image_url"},%b]' % tail) or []) == 1


@pytest.mark.parametrize(
    "tail", [b"NaN", b"Infinity", b"01", b'"\x01"', b"]", b"'x'", b'"\xff"]', b"nul", b"1 2"]
)
def test_what_nobody_takes_for_json(tail: bytes) -> None:
    assert find_image_parts(b'[{"type":"image_url"},%b]' % tail) is None


def test_a_byte_order_mark_is_no_json() -> None:
    assert find_image_parts(b"\xef\xbb\xbf" + b'{"type":"image_url"}') is None


def test_a_number_beyond_a_float_is_noted() -> None:
    for number, over in ((b"1e309", True), (b"-1e400", True), (b"1" * 400, False), (b"1" * 5000, True)):
        images = find_image_parts(b'[{"type":"image_url"},%b]' % number)
        assert images is not None and images.overflow is over


def test_depth_is_noted() -> None:
    part = json.dumps(PART)
    for depth, deep in ((MAX_DEPTH - 1, False), (MAX_DEPTH, True), (MAX_DEPTH + 50, True)):
        images = find_image_parts(nested(depth, part.replace('{"type"', '{"a":1,"type"')))
        assert images is not None
        # The part is a leaf: what is in it does not count.
        assert images.deep is (depth > MAX_DEPTH), (depth, deep)
    images = find_image_parts(nested(MAX_DEPTH, '1,"image_url"'))
    assert images is not None and not images.deep
    images = find_image_parts(nested(MAX_DEPTH + 1, '1,"image_url"'))
    assert images is not None and images.deep
    assert find_image_parts(nested(200_000, part)) is None


def test_more_than_anybody_sends_is_refused() -> None:
    values = b'[{"type":"image_url"}' + b",1" * MAX_VALUES + b"]"
    parts = b"[" + b",".join([b'{"type":"image_url"}'] * (MAX_PARTS + 1)) + b"]"
    strings = b'{"type":"image_url","a":[' + b'"",' * (5 * MAX_VALUES) + b'""]}'
    for body in (values, parts, strings):
        with pytest.raises(PeerError) as caught:
            find_image_parts(body)
        assert caught.value.fault.code == "invalid_request"
    # Commas and brackets of a text are no values; without an image nothing is decoded at all.
    text = b'[{"type":"image_url"},"' + b"\\\\,[{\\" + b'"' + b",[{" * MAX_VALUES + b'"]'
    assert found(text) == [{"type": "image_url"}]
    assert found(b"[" + b"1," * (2 * MAX_VALUES) + b"1]") == []


def test_the_url_of_a_part() -> None:
    assert url_of({"image_url": "a"}) == url_of({"image_url": {"url": "a"}}) == "a"
    for part in ({}, {"image_url": None}, {"image_url": {"url": 1}}, {"image_url": ["a"]}, {"url": "a"}):
        assert url_of(part) == ""


PARTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["image_url", "INPUT_IMAGE", "text", 3])},
    optional={"image_url": JSON, "x": JSON},
)
TREES = st.recursive(
    JSON | PARTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(TREES, st.booleans())
def test_as_the_rule_says(tree: Any, ascii_only: bool) -> None:
    body = json.dumps(tree, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    parts = found(body)
    expected = by_recursion(tree)
    assert parts is not None and len(parts) == len(expected)


@settings(max_examples=300)
@given(TREES, st.binary(max_size=4), st.integers(0, 400))
def test_broken_bodies_are_read(tree: Any, noise: bytes, at: int) -> None:
    body = json.dumps([PART, tree]).encode()
    images = find_image_parts(body[:at] + noise + body[at + len(noise) :])
    assert images is None or len(images.parts) <= len(body)


@pytest.mark.long
@settings(max_examples=10_000)
@given(st.binary(max_size=60), st.integers(0, 120))
def test_ten_thousand_bodies(noise: bytes, at: int) -> None:
    body = json.dumps(
        {"messages": [{"role": "user", "content": [PART, {"type": "text", "text": "é"}]}]}
    ).encode()
    find_image_parts(body[:at] + noise + body[at:])
    find_image_parts(body[:at] + noise + body[at + len(noise) :])

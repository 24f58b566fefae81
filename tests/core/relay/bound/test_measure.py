"""The input bound against figures worked out by hand from the rule."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.bound.measure import (
    MAX_COUNT,
    Bounds,
    image_tokens,
    input_bound,
    input_bounds,
)
from tests.support.mutate import mutated

PNG_512 = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 512, 512) + b"\x08\x02\x00\x00\x00"


def body_with(url: str, **extra: Any) -> bytes:
    part = {"type": "image_url", "image_url": {"url": url, **extra}}
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": [part]}]}).encode()


def inline(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("body", "bounds"),
    [
        (b"", (32, 32)),
        (b"abc", (34, 34)),
        (b"\xef\xbb\xbf", (34, 32)),
        (b"\xef\xbb\xbfabcd", (36, 34)),
        ("日本".encode(), (35, 35)),
        # 59 bytes of text, rounded up to 30, beside the URL; 85 + 170 * 16 for what is not known.
        (b'{"type":"image_url","image_url":{"url":"https://x/","a":12}}', (30 - 5 + 2805 + 32,) * 2),
    ],
)
def test_the_text_of_a_body(body: bytes, bounds: tuple[int, int]) -> None:
    assert input_bounds(body) == Bounds(*bounds)


def test_an_image_is_measured_by_its_header_in_version_two() -> None:
    url = inline(PNG_512)
    body = body_with(url)
    text = -(-(len(body) - len(url)) // 2)
    assert input_bounds(body) == (text + 2805 + 32, text + 255 + 32)


@pytest.mark.parametrize(
    ("part", "v1", "v2"),
    [
        ({}, 2805, 2805),
        ({"detail": "low"}, 85, 85),
        ({"detail": "LOW", "width": 9}, 85, 85),
        ({"detail": "low", "image_url": {"detail": "high"}}, 2805, 2805),
        ({"detail": "low", "image_url": {"detail": ""}}, 85, 85),
        ({"detail": "high", "image_url": {"detail": "low"}}, 85, 85),
        ({"detail": 1, "width": 1024, "height": 768}, 765, 765),
        ({"width": 1024, "image_url": {"width": 512, "height": 513}}, 425, 425),
        # The nested number wins in version 1 whatever it is, in version 2 if it is a size.
        ({"width": 512, "height": 512, "image_url": {"width": 0}}, 765, 255),
        ({"width": 512, "height": 512, "image_url": {"width": -5}}, 255, 255),
        ({"width": True, "height": "9"}, 2805, 2805),
        ({"width": 0.9, "height": 512.9}, 765, 765),
        ({"width": 512, "height": float("inf")}, 85 + 170 * 4194304, 85 + 170 * 32),
        ({"width": 512, "height": float("-inf")}, 255, 85 + 170 * 4),
        ({"width": 99_999, "height": 512}, 85 + 170 * 196, 85 + 170 * 32),
        ({"image_url": inline(PNG_512)}, 2805, 255),
        ({"image_url": {"url": inline(PNG_512)}, "width": 4096}, 85 + 170 * 32, 255),
        ({"image_url": inline(PNG_512), "width": 4096, "height": 512}, 1445, 1445),
        ({"image_url": inline(PNG_512.replace(b"\x00\x00\x02\x00", b"\x00\x00\x00\x00"))}, 2805, 2805),
        ({"image_url": inline(PNG_512.replace(b"\x00\x00\x02\x00", b"\xff\xff\xff\xff"))}, 2805, 174165),
    ],
)
def test_the_tokens_of_an_image(part: dict[str, Any], v1: int, v2: int) -> None:
    assert (image_tokens(part, 1), image_tokens(part, 2)) == (v1, v2)


def test_what_cannot_be_walked_is_text() -> None:
    part = json.dumps({"type": "image_url", "image_url": "https://x/"})
    broken = (part + "!").encode()
    assert input_bounds(broken) == (-(-len(broken) // 2) + 32,) * 2
    deep = ("[" * 300 + part + "]" * 300).encode()
    walked = -(-(len(deep) - 10) // 2) + 2805 + 32
    assert input_bounds(deep) == (walked, -(-len(deep) // 2) + 32)
    over = f"[1e309,{part}]".encode()
    assert input_bounds(over) == (-(-len(over) // 2) + 32, -(-(len(over) - 10) // 2) + 2805 + 32)
    marked = b"\xef\xbb\xbf" + part.encode()
    assert input_bounds(marked) == (-(-len(marked) // 2) + 32, -(-(len(part) - 10) // 2) + 2805 + 32)


def test_bytes_of_a_url_count_as_they_are_encoded() -> None:
    for url, size in (("é", 2), ("日", 3), ("\\ud800", 3), ("\\u00e9", 2)):
        body = f'{{"type":"image_url","image_url":"{url}"}}'.encode()
        assert input_bound(body, 1) == -(-(len(body) - size) // 2) + 2805 + 32


def test_the_bound_stays_within_a_ticket() -> None:
    part = b'{"type":"image_url","width":1e300,"height":1e300}'
    assert input_bound(b"[" + b",".join([part] * 4000) + b"]", 1) == MAX_COUNT


@given(st.binary(max_size=300))
def test_any_bytes_have_a_bound(body: bytes) -> None:
    bounds = input_bounds(body)
    assert bounds == (input_bound(body, 1), input_bound(body, 2))
    assert bounds.v1 >= 32 and bounds.v2 >= 32


@given(mutated(json.loads(body_with(inline(PNG_512), detail="high", width=12))))
def test_any_request_has_a_bound(body: dict[str, Any]) -> None:
    data = json.dumps(body).encode()
    assert 32 <= input_bounds(data).v2 <= len(data) + 180_000

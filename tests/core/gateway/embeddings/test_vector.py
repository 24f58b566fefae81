from __future__ import annotations

import base64
import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.embeddings.vector import Mean, base64_of, numbers_of, packed, vector_of

NUMBERS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=9)


@given(NUMBERS)
def test_base64_and_numbers_are_the_same_vector(numbers: list[float]) -> None:
    vector = packed(numbers)
    assert vector == struct.pack(f"<{len(numbers)}f", *numbers)
    assert list(numbers_of(vector)) == numbers
    assert base64.b64decode(base64_of(vector), validate=True) == vector
    assert vector_of(b'"%b"' % base64_of(vector)) == vector
    assert vector_of(json.dumps(numbers).encode()) == vector


def test_base64_with_escaped_slashes() -> None:
    escaped = base64_of(b"\xff" * 12).replace(b"/", rb"\/")
    assert vector_of(b'"%b"' % escaped) == b"\xff" * 12


@pytest.mark.parametrize(
    "raw",
    [b"", b"null", b"3", b"[]", b'""', b'"?"', b'"AAAA"', b'["a"]', b"[1e999]", b"[1e300]", b"[" * 9999],
)
def test_what_is_no_vector_is_an_engines_failure(raw: bytes) -> None:
    with pytest.raises(PeerError) as caught:
        vector_of(raw)
    assert caught.value.fault.code == "engine_failed"


def test_the_mean_counts_tokens_and_takes_back() -> None:
    mean = Mean()
    mean.add(packed([1.0, 0.0]), 3)
    mean.add(packed([0.0, 1.0]), 5)
    mean.add(packed([0.0, 1.0]), -1)
    assert numbers_of(mean.vector()) == pytest.approx((0.6, 0.8))


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9), st.integers(1, 128)), min_size=1, max_size=9))
def test_a_mean_has_length_one_or_is_nothing(parts: list[tuple[float, float, int]]) -> None:
    mean = Mean()
    for x, y, tokens in parts:
        mean.add(packed([x, y]), tokens)
    length = math.hypot(*numbers_of(mean.vector()))
    assert length == pytest.approx(1, abs=1e-6) or length == 0


def test_vectors_of_different_lengths_are_an_engines_failure() -> None:
    mean = Mean()
    mean.add(packed([1.0]), 1)
    with pytest.raises(PeerError):
        mean.add(packed([1.0, 2.0]), 1)

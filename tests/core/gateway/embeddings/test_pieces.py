from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.embeddings.pieces import count, first, later, shortened, tokens_of


def ids(numbers: list[int]) -> bytes:
    return ",".join(map(str, numbers)).encode()


def test_an_engines_tokens() -> None:
    assert tokens_of(200, b'{"tokens":[1, 22,\n3]}') == b"1,22,3"
    assert tokens_of(200, b'{"tokens":[]}') == b""
    for broken in (b"", b"{}", b'{"tokens":3}', b'{"tokens":[{"id":1}]}', b'{"tokens":[-1]}', b"[" * 9999):
        with pytest.raises(PeerError) as caught:
            tokens_of(200, broken)
        assert caught.value.fault.code == "engine_failed"
    with pytest.raises(PeerError):
        tokens_of(503, b"")


def test_counting() -> None:
    assert [count(each) for each in (b"", b"5", b"5,17")] == [0, 1, 2]


@given(st.lists(st.integers(0, 300_000), min_size=1, max_size=60), st.integers(1, 20), st.integers(1, 20))
def test_pieces_hold_every_token_once_and_in_order(numbers: list[int], size: int, room: int) -> None:
    text = ids(numbers)
    parts = [first(text, size), *later(text, size, room)]
    assert [int(each) for part in parts for each in part.split(b",")] == numbers
    assert count(parts[0]) == min(size, len(numbers))
    assert all(count(part) == room for part in parts[1:-1])
    assert all(1 <= count(part) <= max(size, room) for part in parts)


@given(st.lists(st.integers(0, 99), min_size=1, max_size=30), st.integers(1, 30))
def test_a_shortened_text_is_its_beginning(numbers: list[int], size: int) -> None:
    assert shortened(ids(numbers), size, b"") == ids(numbers[:size])


@pytest.mark.parametrize(
    ("nothing", "text", "short"),
    [
        (b"", b"5,6,7,8", b"5,6,7"),
        (b"1", b"1,6,7,8", b"1,6,7"),  # what begins every text
        (b"2", b"5,6,7,2", b"5,6,2"),  # what ends every text
        (b"1,2", b"1,6,7,2", b"1,6,2"),
    ],
)
def test_what_ends_every_text_ends_a_shortened_one_too(nothing: bytes, text: bytes, short: bytes) -> None:
    assert shortened(text, 3, nothing) == short


def test_a_long_text_is_cut_as_it_is_needed() -> None:
    text = ids(list(range(200_000)))
    pieces = later(text, 128, 124)
    assert next(pieces).startswith(b"128,129,")
    assert json.loads(b"[%b]" % next(pieces))[0] == 252

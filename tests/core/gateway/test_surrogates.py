"""Halves of characters, joined or given up."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.gateway.surrogates import Surrogates, tagged, untagged


def mended(*pieces: bytes) -> list[bytes]:
    surrogates = Surrogates()
    return [*(surrogates.read(b'"%b"' % piece) for piece in pieces), surrogates.end()]


@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        ([rb"\ud83d", rb"\ude0a"], [b"", rb'"\ud83d\ude0a"', b""]),
        ([rb"a\uD83D", rb"\uDE0Ab"], [b'"a"', rb'"\uD83D\uDE0Ab"', b""]),
        ([rb"\ud83d\ude0a\u00e9\n"], [rb'"\ud83d\ude0a\u00e9\n"', b""]),
        ([rb"\ud83d", b"a"], [b"", rb'"\ufffda"', b""]),
        ([rb"\ud83d", rb"\u0041"], [b"", rb'"\ufffd\u0041"', b""]),
        ([rb"\ud83d", rb"\ud83d\ude0a"], [b"", rb'"\ufffd\ud83d\ude0a"', b""]),
        ([rb"\ud83d\ud83d"], [rb'"\ufffd"', rb'"\ufffd"']),
        ([rb"a\ude0ab"], [rb'"a\ufffdb"', b""]),
        ([rb"a\ud83d"], [b'"a"', rb'"\ufffd"']),
        ([rb"\\ud83d", rb"\\\ud83d"], [rb'"\\ud83d"', rb'"\\"', rb'"\ufffd"']),
        (["é😊".encode()], ['"é😊"'.encode(), b""]),
    ],
)
def test_halves(pieces: list[bytes], found: list[bytes]) -> None:
    assert mended(*pieces) == found


UNITS = st.sampled_from(
    ["\\ud83d", "\\ude0a", "\\uDBFF", "\\uDFFF", "a", "é", "\\\\", "\\n", "\\u0041", "u", "d83d"]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(UNITS, max_size=4).map("".join), max_size=6))
def test_text_is_whole_and_does_not_depend_on_the_cuts(pieces: list[str]) -> None:
    cut = mended(*(piece.encode() for piece in pieces))
    text = "".join(json.loads(piece) for piece in cut if piece)
    assert text.encode().decode() == text
    whole = json.loads('"' + "".join(pieces) + '"')
    assert text == whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    # Every piece stands for itself.
    for piece in cut:
        assert json.loads(piece or b'""').encode() is not None


@settings(max_examples=200, deadline=None)
@given(st.lists(UNITS, max_size=8).map("".join))
def test_a_text_with_stand_ins_is_read_and_gets_its_halves_back(text: str) -> None:
    data = f'{{"a":"{text}"}}'.encode()
    stood_in = tagged(data)
    msgspec.json.decode(stood_in)
    assert json.loads(untagged(stood_in)) == json.loads(data)


def test_what_has_no_halves_has_no_stand_ins() -> None:
    whole = rb'"\ud83d\ude0a\\ud83d\u00e9"'
    assert tagged(whole) == whole == untagged(whole)
    # Their own range, written by somebody else, is left alone below the stand-ins.
    assert untagged(rb'"\udbfd\udfff"') == rb'"\udbfd\udfff"'

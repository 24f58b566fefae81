from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.hopcheck.answers import (
    code_of,
    details_of,
    from_relaydesk,
    marked,
    own_words,
    plain,
    probe_answer,
)
from relaydesk.core.hopcheck.model import Exchange, Headers
from relaydesk.core.hopcheck.record import chunk

REFUSED = b'{"error":{"message":"m","type":"t","code":"relay_bad_target"}}'


def said(body: bytes, status: int = 200, headers: Headers = ()) -> Exchange:
    return Exchange("POST", "x", status=status, headers=headers, body=body)


@pytest.mark.parametrize(
    ("body", "own", "ours"),
    [
        (REFUSED, True, True),
        (b'{"error":{"code":"relay_upstream_unreachable"}}', True, True),
        (b'{"error":{"code":"not_found"}}', False, True),
        (b'{"error":{"code":"rate_limited"}}', False, False),
        (b'{"error":"relay_bad_target"}', False, False),
        (b'{"zs_probe":"echo"}', True, True),
        (b'{"proto_version":"9.10","operator_id":1}', False, True),
        (b"<html>502</html>", False, False),
        (b"", False, False),
        (b"[1]", False, False),
    ],
)
def test_whose_words_they_are(body: bytes, own: bool, ours: bool) -> None:
    assert own_words(said(body)) is own
    assert from_relaydesk(said(body)) is ours


def test_the_marker_is_known_in_any_case_and_with_any_value() -> None:
    assert marked(said(b"", headers=(("x-zs-relay-hop", "7"),)))
    assert not marked(said(b"", headers=(("x-zs-relay-hops", "1"),)))


def test_compressed_words_are_read_where_that_can_be_done() -> None:
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(REFUSED) + packer.flush()
    found = said(packed, headers=(("Content-Encoding", "gzip"),))
    assert plain(found) == REFUSED
    assert code_of(found) == "relay_bad_target"
    assert plain(said(b"\x00nonsense", headers=(("Content-Encoding", "gzip"),))) == b"\x00nonsense"
    # What cannot be undone here is taken for the node's where the marker says so.
    assert own_words(said(b"\x00", headers=(("Content-Encoding", "br"), ("X-Zs-Relay-Hop", "1"))))
    assert not own_words(said(b"\x00", headers=(("Content-Encoding", "br"),)))


def test_a_bomb_is_not_unpacked() -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = packer.compress(bytes(50_000_000)) + packer.flush()
    assert len(plain(said(bomb, headers=(("Content-Encoding", "gzip"),)))) <= 4096


def test_the_first_chunk_of_a_stream_says_what_it_is() -> None:
    assert probe_answer(said(chunk(0) + chunk(1))) == {"zs_probe": "stream", "chunk": 0}


def test_details_are_details_only_with_success() -> None:
    body = b'{"proto_version":"9.10","operator_id":1}'
    assert details_of(said(body)) is not None
    assert details_of(said(body, 404)) is None


@given(st.binary(max_size=200), st.sampled_from(["", "gzip", "deflate", "br"]))
def test_any_body_can_be_looked_at(body: bytes, encoding: str) -> None:
    found = said(body, headers=(("Content-Encoding", encoding),))
    own_words(found)
    from_relaydesk(found)
    details_of(found)

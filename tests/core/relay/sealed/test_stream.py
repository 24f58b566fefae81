"""The writer of sealed streams, against events made by hand with another library."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.sealed.box import Exchange
from relaydesk.core.relay.sealed.stream import KEEP_ALIVE, Sealer
from tests.support.sealed_stream import DONE, KEY, NONCE, content, receipt, settle

AT = Exchange(KEY, "TX", "T1")


@given(st.lists(st.binary(max_size=100), max_size=5))
def test_it_writes_what_the_wire_says(chunks: list[bytes]) -> None:
    sealer = Sealer(AT)
    for index, chunk in enumerate(chunks):
        assert sealer.index == index
        assert sealer.content(chunk, NONCE) == content(index, chunk)
    assert sealer.body_hash == hashlib.sha256(b"".join(chunks)).hexdigest()
    # The settle group takes no index, the receipt the next one; neither is in the hash.
    assert sealer.settle_group(b"\x82\xff", NONCE) == settle(b"\x82\xff")
    assert sealer.receipt(b'{"sig":""}', NONCE) == receipt(len(chunks), b'{"sig":""}')
    assert sealer.body_hash == hashlib.sha256(b"".join(chunks)).hexdigest()
    assert sealer.done() == DONE


def test_a_stream_may_have_a_receipt_only() -> None:
    assert Sealer(AT).receipt(b"{}", NONCE) == receipt(0, b"{}")


def test_no_event_comes_out_of_order() -> None:
    sealer = Sealer(AT)
    sealer.settle_group(b"", NONCE)
    with pytest.raises(ValueError, match="content"):
        sealer.content(b"x", NONCE)
    with pytest.raises(ValueError, match="settle"):
        sealer.settle_group(b"", NONCE)
    sealer.receipt(b"{}", NONCE)
    with pytest.raises(ValueError, match="receipt"):
        sealer.receipt(b"{}", NONCE)
    sealer.done()
    for call in (sealer.content, sealer.settle_group, sealer.receipt):
        with pytest.raises(ValueError, match="before"):
            call(b"x", NONCE)
    assert sealer.index == 1


def test_a_keep_alive_is_a_comment() -> None:
    assert KEEP_ALIVE.startswith(b":") and KEEP_ALIVE.endswith(b"\n\n") and KEEP_ALIVE.count(b"\n") == 2

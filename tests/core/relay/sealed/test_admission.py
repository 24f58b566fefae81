"""The admission tag, against another library."""

from __future__ import annotations

import hashlib

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from relaydesk.core.relay.sealed.admission import admission_tag, tag_holds

KEY = bytes(range(32))


def test_it_is_the_hmac_of_ids_and_body() -> None:
    other = HMAC(KEY, SHA256())
    other.update(b"zs-admission-v1\x00T1\x00TX\x00" + hashlib.sha256(b"body").digest())
    tag = other.finalize()
    assert admission_tag(KEY, "T1", "TX", b"body") == tag
    assert tag_holds(tag, KEY, "T1", "TX", b"body")


@pytest.mark.parametrize(
    ("key", "ticket", "tx", "body"),
    [
        (KEY[::-1], "T1", "TX", b"body"),
        (KEY, "T2", "TX", b"body"),
        (KEY, "T1", "TY", b"body"),
        (KEY, "T1", "TX", b""),
    ],
)
def test_nothing_else_has_this_tag(key: bytes, ticket: str, tx: str, body: bytes) -> None:
    assert not tag_holds(admission_tag(KEY, "T1", "TX", b"body"), key, ticket, tx, body)


@pytest.mark.parametrize("tag", [b"", b"x", bytes(32), bytes(33)])
def test_what_is_no_tag(tag: bytes) -> None:
    assert not tag_holds(tag, KEY, "T1", "TX", b"body")

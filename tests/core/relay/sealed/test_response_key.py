"""The response key: wrapped to one recipient, committed to by its hash."""

from __future__ import annotations

import base64
import hashlib

import pyrage
import pytest

from relaydesk.core.relay.sealed.envelope import SealedError
from relaydesk.core.relay.sealed.response_key import commit_key, key_is_committed, unwrap_key, wrap_key
from relaydesk.engine.relay.age import PyrageAge
from tests.support.mutants import survives

KEY = bytes(range(32))
AGE = PyrageAge()


def test_it_is_age_in_base64() -> None:
    theirs = pyrage.x25519.Identity.generate()
    text = wrap_key(AGE, KEY, str(theirs.to_public()))
    assert pyrage.decrypt(base64.b64decode(text), [theirs]) == KEY


def test_it_opens_with_its_identity_only() -> None:
    identity = AGE.new_identity()
    text = wrap_key(AGE, KEY, identity.recipient)
    assert unwrap_key(identity, text) == KEY
    with pytest.raises(SealedError, match="this key"):
        unwrap_key(AGE.new_identity(), text)
    short = base64.b64encode(AGE.seal(KEY[:31], identity.recipient)).decode()
    with pytest.raises(SealedError, match="too long"):
        unwrap_key(identity, "A" * 4100)
    for wrong in ("", "x", text + "=", text[:-4], short, "é"):
        with pytest.raises(SealedError):
            unwrap_key(identity, wrong)


def test_the_commitment_is_its_sha256() -> None:
    commit = base64.b64encode(hashlib.sha256(KEY).digest()).decode()
    assert commit_key(KEY) == commit and key_is_committed(KEY, commit)
    for wrong in ("", commit[:-1], commit.lower(), "é", "\ud800"):
        assert not key_is_committed(KEY, wrong)
    assert not key_is_committed(KEY[::-1], commit)


@pytest.mark.parametrize("count", [1_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_mutated_bytes(count: int) -> None:
    identity = AGE.new_identity()

    def read(data: bytes) -> bytes:
        return unwrap_key(identity, data.decode("latin-1"))

    survives(read, SealedError, wrap_key(AGE, KEY, identity.recipient).encode(), count)

"""Sealing by age, against an age of our own making out of another library."""

from __future__ import annotations

import pytest

from relaydesk.engine.relay.age import PyrageAge


def test_what_is_sealed_opens_with_its_identity_only() -> None:
    age = PyrageAge()
    one, other = age.new_identity(), age.new_identity()
    sealed = age.seal(b"a prompt", one.recipient)
    assert b"a prompt" not in sealed
    assert sealed.startswith(b"age-encryption.org/v1\n")
    assert one.open(sealed) == b"a prompt"
    with pytest.raises(ValueError, match="not sealed"):
        other.open(sealed)


@pytest.mark.parametrize("cut", [0, 1, 40, 100])
def test_a_changed_or_short_ciphertext_does_not_open(cut: int) -> None:
    age = PyrageAge()
    identity = age.new_identity()
    sealed = bytearray(age.seal(b"a prompt", identity.recipient))
    sealed[-1] ^= 1
    with pytest.raises(ValueError, match="not sealed"):
        identity.open(bytes(sealed))
    with pytest.raises(ValueError, match="not sealed"):
        identity.open(bytes(sealed[:cut]))


@pytest.mark.parametrize("recipient", ["", "age1", "age1" + "q" * 58, "AGE-SECRET-KEY-1", "ssh-ed25519 AAAA"])
def test_what_is_no_recipient_is_refused(recipient: str) -> None:
    with pytest.raises(ValueError, match="no age recipient"):
        PyrageAge().seal(b"", recipient)


def test_an_identity_never_shows_its_secret() -> None:
    identity = PyrageAge().new_identity()
    assert "SECRET" not in repr(identity).upper()

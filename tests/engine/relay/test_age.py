"""Sealing by age, against an age of our own making out of another library."""

from __future__ import annotations

import base64

import pytest

from relaydesk.engine.relay.age import HEADER_LIMIT, STANZAS, PyrageAge


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


def stanza(number: int) -> bytes:
    share = base64.b64encode(number.to_bytes(32, "big")).rstrip(b"=")
    return b"-> X25519 " + share + b"\n" + share + b"\n"


def test_a_header_longer_than_one_recipient_needs_is_not_given_to_the_library() -> None:
    """A thousand stanzas would take it seconds, with the whole process standing still."""
    identity = PyrageAge().new_identity()
    version, mac = b"age-encryption.org/v1\n", b"--- " + b"A" * 43 + b"\n" + bytes(64)
    for header in (
        b"".join(map(stanza, range(80_000))),
        b"-> X25519 " + b"A" * HEADER_LIMIT + b"\n",
        b"".join(b"-> a\n\n" for _ in range(STANZAS + 1)),
    ):
        with pytest.raises(ValueError, match="too long"):
            identity.open(version + header + mac)


def test_a_header_with_a_stanza_beside_ours_opens() -> None:
    """Writers add one that means nothing, of a random length, so that readers must take it."""
    age = PyrageAge()
    identity = age.new_identity()
    assert all(identity.open(age.seal(b"a", identity.recipient)) == b"a" for _ in range(200))


@pytest.mark.parametrize("recipient", ["", "age1", "age1" + "q" * 58, "AGE-SECRET-KEY-1", "ssh-ed25519 AAAA"])
def test_what_is_no_recipient_is_refused(recipient: str) -> None:
    with pytest.raises(ValueError, match="no age recipient"):
        PyrageAge().seal(b"", recipient)


# Points of order 1, 2, 4 and 8, with and without the bit that is not looked at, encoded by hand.
SMALL_ORDER = [
    "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq5cu47z",
    "age1qyqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqj7vrya",
    "age1ur4h5lpmgxu2u9jku0a0r87ydtdqnr0tnsetrlvxvgz3vh6fhqqqzyt4v9",
    "age1t7wft09r2zxzfvwsk92eeql0tvzyghxytqwgapkcyf8dm5ylz9ts6wm9s8",
    "age1anlllllllllllllllllllllllllllllllllllllllllllllllals4n2t7m",
    "age1ahlllllllllllllllllllllllllllllllllllllllllllllllalsn46ayy",
    "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqzqqsuwj9m",
]


@pytest.mark.parametrize("recipient", SMALL_ORDER)
def test_a_point_that_shares_nothing_is_no_recipient(recipient: str) -> None:
    """The library would panic, past every ``except Exception``."""
    with pytest.raises(ValueError, match="no age recipient"):
        PyrageAge().seal(b"", recipient)


def test_an_identity_never_shows_its_secret() -> None:
    identity = PyrageAge().new_identity()
    assert "SECRET" not in repr(identity).upper()

"""The advert of a node's short-lived key: its bytes, its signature, its windows, in that order."""

from __future__ import annotations

import base64
import hashlib
import struct
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.records.ephemeral import (
    Ephemeral,
    Holds,
    check_ephemeral,
    is_recipient,
    sign_ephemeral,
)
from relaydesk.core.relay.ref import NodeRef
from relaydesk.engine.relay.age import PyrageAge

KEY = Ed25519PrivateKey.from_private_bytes(b"\x07" * 32)
PUBLIC = KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
REF = NodeRef(2**53 - 1, 7)
RECIPIENT = "age1rc8wp62cfvmldwhm49mdp5lg3gu6qkrs2whhactp0w9nqjk6wp7sl74d8s"
NOW = 1_700_000_000


def advert(issued: int, expiry: int, ref: NodeRef = REF) -> Ephemeral:
    """One signed by another library over bytes laid out by hand."""
    said = b"zs-ephemeral-v1\0" + struct.pack(">QQI", *ref, 62) + RECIPIENT.encode()
    said += struct.pack(">qq", expiry, issued)
    sig = KEY.sign(hashlib.sha256(said).digest())
    return Ephemeral(RECIPIENT, issued, expiry, base64.b64encode(sig).decode())


def test_it_is_signed_as_the_wire_says() -> None:
    assert sign_ephemeral(b"\x07" * 32, REF, RECIPIENT, NOW, NOW + 1500) == advert(NOW, NOW + 1500)


@pytest.mark.parametrize(
    ("issued", "expiry", "holds"),
    [
        (0, 1500, Holds.FRESH),
        (60, 1500, Holds.FRESH),
        (61, 1500, Holds.FROM_THE_FUTURE),
        # From the future is said before a life that is too long.
        (61, 9999, Holds.FROM_THE_FUTURE),
        (0, 2400, Holds.FRESH),
        (0, 2401, Holds.BAD_LIFE),
        (0, -1, Holds.BAD_LIFE),
        (-30, -30, Holds.FRESH),
        (-1260, 240, Holds.FRESH),
        (-1261, 239, Holds.STALE),
        (-1560, -60, Holds.STALE),
        (-1561, -61, Holds.EXPIRED),
        (-(2**62), 2**62, Holds.BAD_LIFE),
    ],
)
def test_the_windows(issued: int, expiry: int, holds: Holds) -> None:
    found = check_ephemeral(advert(NOW + issued, NOW + expiry), REF, PUBLIC, NOW)
    assert found is holds
    assert found.usable == (holds in (Holds.FRESH, Holds.STALE))


def test_only_a_relay_can_be_stale() -> None:
    assert check_ephemeral(advert(NOW - 1400, NOW + 100), REF, PUBLIC, NOW, relayed=False) is Holds.FRESH


def test_the_signature_comes_first() -> None:
    unsigned = replace(advert(NOW + 999, NOW + 9999), sig=base64.b64encode(bytes(64)).decode())
    assert check_ephemeral(unsigned, REF, PUBLIC, NOW) is Holds.BAD_SIGNATURE


def test_a_siblings_advert_does_not_hold() -> None:
    good = advert(NOW, NOW + 1500)
    assert check_ephemeral(good, REF, PUBLIC, NOW) is Holds.FRESH
    for other in (NodeRef(REF.operator, 8), NodeRef(REF.operator - 1, 7), NodeRef(-1, 2**64)):
        assert check_ephemeral(good, other, PUBLIC, NOW) is Holds.BAD_SIGNATURE
    assert check_ephemeral(good, REF, PUBLIC[::-1], NOW) is Holds.BAD_SIGNATURE


@given(
    st.text(max_size=70) | st.just(RECIPIENT),
    st.integers(-(2**70), 2**70),
    st.integers(-(2**70), 2**70),
    st.text(max_size=90) | st.just(advert(NOW, NOW + 1500).sig),
)
def test_what_nobody_signed_never_holds(key: str, issued: int, expiry: int, sig: str) -> None:
    if (key, issued, expiry) != (RECIPIENT, NOW, NOW + 1500):
        found = check_ephemeral(Ephemeral(key, issued, expiry, sig), REF, PUBLIC, NOW)
        assert found is Holds.BAD_SIGNATURE


def test_recipients() -> None:
    assert is_recipient(RECIPIENT) and is_recipient(PyrageAge().new_identity().recipient)
    for text in (
        "",
        RECIPIENT[:-1],
        RECIPIENT + "q",
        RECIPIENT.upper(),
        RECIPIENT.replace("8", "b"),
        RECIPIENT + "\n",
    ):
        assert not is_recipient(text)

from __future__ import annotations

import hashlib

import pytest

from relaydesk.core.access.default_key import default_key, fingerprint
from relaydesk.core.errors import EnvError


class CountingRng:
    def __init__(self) -> None:
        self.calls = 0

    def token_bytes(self, count: int) -> bytes:
        self.calls += 1
        return bytes(range(count))


def test_a_given_key_is_used_as_it_is() -> None:
    rng = CountingRng()
    key = default_key("short", "0" * 64, rng)
    assert (key.secret, key.created, key.given, rng.calls) == ("short", False, True, 0)


def test_a_stored_key_stays() -> None:
    rng = CountingRng()
    key = default_key("", "f" * 64, rng)
    assert (key.secret, key.created, key.given, rng.calls) == ("f" * 64, False, False, 0)


def test_a_new_key_is_32_bytes_in_hex_and_to_be_printed() -> None:
    key = default_key("", None, CountingRng())
    assert key.secret == bytes(range(32)).hex()
    assert key.created
    assert not key.given


@pytest.mark.parametrize("stored", ["", "abc", "f" * 63 + " ", "é" * 64, "f" * 32 + "\0" * 32])
def test_a_damaged_key_is_never_replaced(stored: str) -> None:
    rng = CountingRng()
    with pytest.raises(EnvError) as caught:
        default_key("", stored, rng)
    assert caught.value.fault.code == "secret_failed"
    assert caught.value.fault.hint
    assert rng.calls == 0


def test_fingerprint_and_repr_do_not_show_the_key() -> None:
    key = default_key("sk-visible", None, CountingRng())
    assert key.fingerprint == fingerprint("sk-visible") == hashlib.sha256(b"sk-visible").hexdigest()[:8]
    assert "sk-visible" not in repr(key)

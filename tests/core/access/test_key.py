from __future__ import annotations

import pytest

from relaydesk.core.access.key import KeySpec, key_id, make_secret, parse_key_name
from relaydesk.core.errors import LocalError


class Fixed:
    def token_bytes(self, count: int) -> bytes:
        return b"\xab" * count


@pytest.mark.parametrize("name", ["a", "ann", "ann.editor-2", "ann@home", "x" * 64])
def test_names(name: str) -> None:
    assert parse_key_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "default", "Default", "a b", "-a", "a.", "a\nb", "é", "x" * 65, "a/b", "\x1b[1m"]
)
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(LocalError) as caught:
        parse_key_name(name)
    assert caught.value.fault.param == "name"
    assert "\x1b" not in caught.value.fault.sentence


def test_a_secret_and_its_id() -> None:
    secret = make_secret(Fixed())
    assert secret == "rk-" + "ab" * 32
    assert len(key_id(secret)) == 16
    assert key_id(secret) not in secret


def test_until_when_and_for_what() -> None:
    spec = KeySpec(name="a", id="b" * 16, created_ms=1)
    assert not spec.expired(10**15)
    assert spec.allows("anything")
    late = KeySpec(name="a", id="b" * 16, created_ms=1, expires_ms=100, models=("m",))
    assert [late.expired(now) for now in (99, 100, 101)] == [False, True, True]
    assert late.allows("m")
    assert not late.allows("n")

from __future__ import annotations

import base64

import pytest

from relaydesk.core.errors import LocalError
from relaydesk.core.relay.directory.signing_key import SigningKey, new_key, parse_key
from tests.support.clock import FakeRng
from tests.support.directory_world import ANN


def test_a_key_signs_as_another_library_checks() -> None:
    key = SigningKey("owner", ANN.seed)
    assert key.address == ANN.address
    ANN.private.public_key().verify(key.sign(b"d" * 32), b"d" * 32)


def test_its_line_comes_back_and_nothing_else_shows_the_secret() -> None:
    key = new_key("node", FakeRng())
    assert parse_key(key.text() + "\n", "node") == key
    secret = base64.b64encode(key.seed).decode()
    assert secret in key.text()
    assert secret not in repr(key)
    assert repr(key.seed) not in repr(key)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "relaydesk-owner-key-v1:",
        "relaydesk-owner-key-v1:AAAA",
        "relaydesk-node-key-v1:" + base64.b64encode(b"s" * 32).decode(),
        "relaydesk-owner-key-v1:" + base64.b64encode(b"s" * 33).decode(),
        "relaydesk-owner-key-v1:" + base64.b64encode(b"s" * 32).decode().replace("=", "!"),
    ],
)
def test_what_is_no_key_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(LocalError) as caught:
        parse_key(text, "owner")
    secret = text.partition(":")[2]
    assert not secret or secret not in caught.value.fault.sentence

from __future__ import annotations

import ssl

import pytest

from relaydesk.config.model import Settings
from relaydesk.core.hopcheck.model import Layer
from relaydesk.engine.hopcheck.door import door_of, loose, trusts

PUBLIC = Layer("public", "https://node.example.org/relay", "public")


def test_the_public_layer_is_asked_by_its_own_name() -> None:
    door = door_of(PUBLIC, PUBLIC)
    assert (door.host, door.port) == ("node.example.org", 443)
    assert door.authority == door.name == "node.example.org"
    assert (door.relay, door.url("/v1/zs/relay")) == ("/relay/v1/zs/relay", f"{PUBLIC.url}/v1/zs/relay")
    assert door.tls


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "192.168.1.2:8080"])
def test_a_layer_given_by_its_address_is_asked_by_the_public_name(host: str) -> None:
    door = door_of(Layer("nginx", f"http://{host}", "via"), PUBLIC)
    assert (f"{door.host}:{door.port}", door.authority, door.name) == (
        host,
        "node.example.org",
        "node.example.org",
    )
    assert not door.tls


def test_a_layer_given_by_a_name_is_asked_by_it() -> None:
    door = door_of(Layer("nginx", "https://inner.lan:8443", "via"), PUBLIC)
    assert (door.authority, door.name, door.port) == ("inner.lan:8443", "inner.lan", 8443)


def test_a_url_without_a_host_is_none() -> None:
    with pytest.raises(ValueError, match="without a host"):
        door_of(Layer("x", "http://", "via"), PUBLIC)


def test_what_callers_trust_and_what_takes_anything() -> None:
    made = trusts(Settings())
    assert made.callers.verify_mode == made.both.verify_mode == made.second.verify_mode == ssl.CERT_REQUIRED
    assert made.callers.check_hostname
    assert loose().verify_mode == ssl.CERT_NONE

"""The entrance, from settings: names are only resolved in labs."""

from __future__ import annotations

from typing import Any

import pytest

from relaydesk.config.listen import parse_listen
from relaydesk.engine.relay.entrance import entrance, has_certificate
from tests.support.lab_ground import network_settings


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"public_url": "http://127.0.0.1:8384"}, ""),
        ({"public_url": "http://[::1]:8384"}, ""),
        ({"public_url": "http://localhost:8384"}, ""),
        ({"public_url": "http://no-such-name.invalid:8384"}, ""),
        ({"public_url": "https://[2a00:1450:4001::1]"}, "RELAY_ALLOW_PRIVATE"),
        ({"public_url": "https://no-such-name.invalid", "allow_private": "off"}, ""),
        ({"public_url": "https://192.168.1.1", "allow_private": "off"}, "private address"),
        ({"network_listen": parse_listen(":8384"), "allow_private": "off"}, "no certificate"),
        ({"network_listen": parse_listen(":8384")}, ""),
        ({"network_tls": "on"}, "there is no certificate"),
    ],
)
async def test_what_the_settings_come_to(changes: dict[str, Any], words: str) -> None:
    found = await entrance(network_settings(**changes))
    assert (words in found.problem) if words else not found.problem


def test_the_hubs_own_authority_is_no_certificate_for_the_world() -> None:
    assert not has_certificate(network_settings())
    assert has_certificate(network_settings(tls_domain=("node.example.org",)))

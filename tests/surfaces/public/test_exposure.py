from __future__ import annotations

import ipaddress

from relaydesk.config.listen import Listen
from relaydesk.config.load import load
from relaydesk.config.model import Settings
from relaydesk.surfaces.public.exposure import exposure_of

LOOPBACK = Listen("127.0.0.1", 8383)


def test_hosts_are_looked_at_on_loopback_only() -> None:
    named = Settings(listen=LOOPBACK, hosts=("hub.example.org",), tls_names=("hub.lan",))
    assert exposure_of(named).hosts == {"hub.example.org", "hub.lan"}
    assert exposure_of(Settings(listen=LOOPBACK)).hosts == frozenset()
    assert exposure_of(Settings(hosts=("hub.example.org",))).hosts is None


def test_from_the_environment() -> None:
    settings = load(
        {
            "RELAY_PATH_PREFIX": "/at//home/",
            "RELAY_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8",
            "RELAY_ORIGINS": "https://Chat.example.org/ http://*.lan:*",
            "XDG_CONFIG_HOME": "/nonexistent",
        }
    ).settings
    exposure = exposure_of(settings)
    assert exposure.prefix == "/at/home"
    assert exposure.proxies == (ipaddress.ip_network("127.0.0.1/32"), ipaddress.ip_network("10.0.0.0/8"))
    assert exposure.origins.allows("https://chat.example.org")
    assert exposure.origins.allows("http://nas.lan:8080")
    assert not exposure.origins.allows("https://evil.example")

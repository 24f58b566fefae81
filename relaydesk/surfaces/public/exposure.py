"""From settings to what the public port is told about how it is reached."""

from __future__ import annotations

import ipaddress

from relaydesk.config.model import Settings
from relaydesk.core.access.exposure import Exposure
from relaydesk.core.access.origins import Origins


def exposure_of(settings: Settings) -> Exposure:
    """The exposure of a node with these settings.

    ``Host`` is looked at only where nobody but this machine connects: elsewhere a hub cannot know what people
    call it, and the key alone protects it.
    """
    known = (*settings.hosts, *settings.tls_names, *settings.tls_domain)
    hosts = frozenset(known) if settings.listen.loopback_only else None
    return Exposure(
        prefix=settings.path_prefix,
        origins=Origins(settings.origins),
        hosts=hosts,
        open_discovery=settings.open_discovery == "on",
        proxies=tuple(ipaddress.ip_network(text) for text in settings.trusted_proxies),
    )

"""What the settings ask of an ACME server."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from relaydesk.config.listen import Listen
from relaydesk.config.model import Settings
from relaydesk.core.tls.problem import ChallengeKind


@dataclass(frozen=True, slots=True)
class AcmePlan:
    """``names`` are what the certificate is for, ``directory`` the server's URL.

    ``hook`` chooses DNS-01; without it HTTP-01 is answered on ``listen``. ``ca`` is the file that vouches
    for a private server.
    """

    names: tuple[str, ...]
    directory: str
    email: str
    ca: Path | None
    listen: Listen
    hook: Path | None

    @property
    def challenge(self) -> ChallengeKind:
        """How the names are proved."""
        return "http-01" if self.hook is None else "dns-01"

    @property
    def server(self) -> str:
        """The server's host, as people know it."""
        return urlsplit(self.directory).hostname or self.directory

    @property
    def shown(self) -> str:
        """The names for a sentence."""
        return ", ".join(self.names)

    @property
    def digest(self) -> str:
        """Tells whether another plan is the same."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]


def acme_plan(settings: Settings) -> AcmePlan | None:
    """The plan of these settings; None where RELAY_TLS_DOMAIN names nothing."""
    if not settings.tls_domain:
        return None
    return AcmePlan(
        settings.tls_domain,
        settings.acme_directory,
        settings.acme_email,
        settings.acme_ca,
        settings.acme_http_listen,
        settings.acme_dns_hook,
    )

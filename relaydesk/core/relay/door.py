"""How the network listener may be opened, and whether a node may be published (design §6).

Callers refuse a certificate that they cannot check, and a relay whose certificate nobody trusts would only
cost its operator reputation: so such a node is not opened at all, and says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

NO_PUBLIC_URL: Final = (
    "RELAY_PUBLIC_URL is not set, so that others could not reach it; it can ask, and it serves and relays "
    "for nobody"
)
NO_DIRECTORY: Final = (
    "no directory is pinned, so that no other node is known: set RELAY_DIRECTORIES to ADDRESS@URL, as its "
    "keeper gives it"
)


@dataclass(frozen=True, slots=True)
class Door:
    """What to open: TLS or plain HTTP; or ``problem`` and the next step, and nothing is opened."""

    tls: bool = False
    problem: str = ""
    hint: str = ""


def door(*, loopback: bool, certificate: bool, lab: bool, choice: str) -> Door:
    """Which door ``RELAY_NETWORK_TLS`` (``auto``, ``on``, ``off``) comes to.

    ``loopback``: only this machine can connect. ``certificate``: one from an ACME server or of the
    operator's own; the hub's own authority does not count, since the world cannot know it.
    """
    if choice == "on" and not certificate:
        return Door(problem="RELAY_NETWORK_TLS is on and there is no certificate", hint=_CERTIFICATE)
    if choice == "on" or (choice == "auto" and certificate and not loopback):
        return Door(tls=True)
    if loopback or lab:
        return Door()
    if choice == "off":
        return Door(
            problem="the network listener would speak plain HTTP to other machines",
            hint="bind it to 127.0.0.1 behind a proxy with TLS, or set RELAY_NETWORK_TLS=auto",
        )
    return Door(problem="the network listener has no certificate that the world trusts", hint=_CERTIFICATE)


_CERTIFICATE = (
    "set RELAY_TLS_DOMAIN, or RELAY_TLS_CERT and RELAY_TLS_KEY; or bind RELAY_NETWORK_LISTEN to 127.0.0.1 "
    "behind a proxy with TLS"
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a setting cannot be as it is, and the next step."""

    problem: str
    hint: str


def refused_url(public_url: str, *, lab: bool, private: bool | None) -> Refusal | None:
    """Why the network cannot be opened with this public URL; None where it can, or where there is none.

    ``private``: whether every address its name stands for is private; None where that is not known.
    """
    if not public_url:
        return None
    if lab and private is False:
        return Refusal(
            "RELAY_ALLOW_PRIVATE opens this network to private addresses, and RELAY_PUBLIC_URL is public",
            "set RELAY_ALLOW_PRIVATE=off, or a RELAY_PUBLIC_URL in the lab",
        )
    if not lab and private:
        return Refusal(
            "RELAY_PUBLIC_URL is a private address, which no other node connects to",
            "give the name that the world reaches this node by; in a lab set RELAY_ALLOW_PRIVATE=on",
        )
    if not lab and urlsplit(public_url).scheme != "https":
        return Refusal(
            "RELAY_PUBLIC_URL is not https, and no other node connects without TLS",
            "put a certificate in front (RELAY_TLS_DOMAIN, or a proxy), and give the https:// URL",
        )
    return None

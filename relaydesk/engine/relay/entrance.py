"""Whether this node's network listener may be opened, and how: the rules of `core/relay/door`, with facts."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from relaydesk.config.model import Settings
from relaydesk.core.errors import EnvError
from relaydesk.core.relay.dialable import public_address
from relaydesk.core.relay.door import NO_DIRECTORY, NO_PUBLIC_URL, Door, door, refused_url

_RESOLVE_S: Final = 5.0


async def entrance(settings: Settings) -> Door:
    """The door for these settings, or why there is none."""
    lab = settings.allow_private == "on"
    return _entrance(settings, await _private(settings.public_url, resolve=lab))


def doubts(settings: Settings) -> tuple[str, ...]:
    """What the settings alone show to be amiss with the relay network, as sentences without a full stop.

    No name is resolved, so that a start may find more.
    """
    if settings.network != "on":
        return ()
    shut = _entrance(settings, _literal(settings.public_url))
    if shut.problem:
        return (f"the relay network would stay closed: {shut.problem}: {shut.hint}",)
    found = []
    if not settings.directories:
        found.append(NO_DIRECTORY)
    if not settings.public_url:
        found.append(f"no directory would list this node: {NO_PUBLIC_URL}")
    return tuple(found)


def _entrance(settings: Settings, private: bool | None) -> Door:
    lab = settings.allow_private == "on"
    refusal = refused_url(settings.public_url, lab=lab, private=private)
    if refusal is not None:
        return Door(problem=refusal.problem, hint=refusal.hint)
    return door(
        loopback=settings.network_listen.loopback_only,
        certificate=has_certificate(settings),
        lab=lab,
        choice=settings.network_tls,
    )


def has_certificate(settings: Settings) -> bool:
    """Whether there is one that the world may trust: the operator's own, or one from an ACME server."""
    return settings.tls_cert is not None or bool(settings.tls_domain)


def trusting(settings: Settings) -> ssl.SSLContext:
    """What this node trusts when it asks others: the system's roots, in labs ``RELAY_NETWORK_CA`` too.

    Reads files: not on the loop. Raises `EnvError` ``tls_failed``.
    """
    context = ssl.create_default_context()
    # Enough for every node of the network, and one step less in each handshake.
    context.set_alpn_protocols(["http/1.1"])
    extra = settings.network_ca
    if extra is not None and settings.allow_private == "on":
        _add(context, extra)
    return context


def _add(context: ssl.SSLContext, file: Path) -> None:
    try:
        context.load_verify_locations(cafile=file)
    except (OSError, ValueError) as error:
        raise EnvError(
            "tls_failed", f"the CA {file} of RELAY_NETWORK_CA cannot be read", "give a PEM file"
        ) from error


async def _private(url: str, *, resolve: bool) -> bool | None:
    """Whether a URL's host is a private address, None where that is not known.

    A name is only resolved in labs: elsewhere the inside of a house may see another address than the world.
    """
    known, host = _literal(url), urlsplit(url).hostname
    if known is not None or not host or not resolve:
        return known
    try:
        async with asyncio.timeout(_RESOLVE_S):
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError):
        return None
    return not any(public_address(str(each[4][0])) for each in found)


def _literal(url: str) -> bool | None:
    """Whether a URL's host is a private address by how it is written; None for a name."""
    host = urlsplit(url).hostname
    if not host:
        return None
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not public_address(ipaddress.ip_address(host))
    except ValueError:
        return None

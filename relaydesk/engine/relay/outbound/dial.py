"""Connecting to another node: the address that is really dialed is the one that was checked.

A name can answer with a public address when it is asked for the first time and with this machine's the second
time (DNS rebinding). So it is resolved once, what may not be dialed is left out, and the socket gets the
address itself; the name is for TLS and ``Host`` alone (wire §1.3).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from relaydesk.core.relay.dialable import public_address
from relaydesk.engine.relay.outbound.connection import Connection
from relaydesk.engine.relay.outbound.unreachable import UnreachableError

RESOLVE_S: Final = 5.0
CONNECT_S: Final = 5.0
TLS_S: Final = 5.0
# A name with hundreds of addresses must not make us dial hundreds of machines.
MOST_ADDRESSES: Final = 6
_KEEP_ALIVE_S: Final = 30
_CLOSE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where a socket connects: ``sockaddr`` as the socket takes it, its first part the numeric address."""

    family: int
    sockaddr: tuple[Any, ...]


Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]


async def system_resolve(host: str, port: int) -> Sequence[Address]:
    """What the system's resolver says, in its order. Raises `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [Address(family, sockaddr) for family, _, _, _, sockaddr in found]


async def dial(
    host: str,
    port: int,
    context: ssl.SSLContext | None,
    *,
    allow_private: bool,
    resolve: Resolve = system_resolve,
    source: str = "",
) -> Connection:
    """A connection to ``host``, over TLS where there is a ``context``, from the address ``source``.

    Raises `UnreachableError`.
    """
    addresses = _from(_allowed(await _resolved(host, port, resolve), allow_private), source)
    loop = asyncio.get_running_loop()
    end = loop.time() + CONNECT_S
    for number, address in enumerate(addresses):
        share = (end - loop.time()) / (len(addresses) - number)
        try:
            sock = await _connect(address, max(share, 0.0), source)
        except (OSError, TimeoutError) as error:
            failure = error
        else:
            return await _speak(sock, host, context)
    if isinstance(failure, TimeoutError):
        raise UnreachableError("timeout", f"no connection within {CONNECT_S:g} s") from failure
    raise UnreachableError("connect", "it takes no connection") from failure


async def _resolved(host: str, port: int, resolve: Resolve) -> Sequence[Address]:
    try:
        async with asyncio.timeout(RESOLVE_S):
            found = await resolve(host, port)
    except TimeoutError as error:
        raise UnreachableError("resolve", f"its name was not found within {RESOLVE_S:g} s") from error
    except (OSError, UnicodeError) as error:
        raise UnreachableError("resolve", "its name was not found") from error
    if not found:
        raise UnreachableError("resolve", "its name has no address")
    return found


def _allowed(found: Sequence[Address], allow_private: bool) -> list[Address]:
    """The addresses that may be dialed, each once."""
    allowed = [
        address for address in dict.fromkeys(found) if allow_private or public_address(address.sockaddr[0])
    ]
    if not allowed:
        raise UnreachableError("refused_address", "its address is not public")
    return allowed[:MOST_ADDRESSES]


def _from(allowed: list[Address], source: str) -> list[Address]:
    """The addresses that can be dialed from ``source``: those of its family."""
    if not source:
        return allowed
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    found = [address for address in allowed if address.family == family]
    if not found:
        raise UnreachableError("connect", "it has no address of the kind that this node connects from")
    return found


async def _connect(address: Address, timeout_s: float, source: str) -> socket.socket:
    """Raises `OSError`; `TimeoutError` is one too. `UnreachableError` where ``source`` is not ours."""
    sock = socket.socket(address.family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        if source:
            _bind(sock, source)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEP_ALIVE_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEP_ALIVE_S)
        async with asyncio.timeout(timeout_s):
            await asyncio.get_running_loop().sock_connect(sock, address.sockaddr)
    except BaseException:
        sock.close()
        raise
    return sock


def _bind(sock: socket.socket, source: str) -> None:
    try:
        sock.bind((source, 0))
    except OSError as error:
        raise UnreachableError("connect", "RELAY_OUTBOUND_ADDRESS is no address of this machine") from error


async def _speak(sock: socket.socket, host: str, context: ssl.SSLContext | None) -> Connection:
    """The connected socket as a connection."""
    loop = asyncio.get_running_loop()
    try:
        if context is None:
            _, connection = await loop.create_connection(Connection, sock=sock)
        else:
            _, connection = await loop.create_connection(
                Connection,
                sock=sock,
                ssl=context,
                server_hostname=host,
                ssl_handshake_timeout=TLS_S,
                ssl_shutdown_timeout=_CLOSE_S,
            )
    except ssl.SSLError as error:
        sock.close()
        reason = "its certificate is not trusted" if _certificate(error) else "the TLS handshake failed"
        raise UnreachableError("tls", reason) from error
    except OSError as error:
        sock.close()
        late = isinstance(error, TimeoutError) or "timeout" in str(error) or "longer than" in str(error)
        raise UnreachableError(
            "tls", f"no TLS handshake within {TLS_S:g} s" if late else "the TLS handshake failed"
        ) from error
    except BaseException:
        sock.close()
        raise
    return connection


def _certificate(error: ssl.SSLError) -> bool:
    return isinstance(error, ssl.SSLCertVerificationError)

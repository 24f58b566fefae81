"""Binding the hub's port, with a sentence where that cannot be."""

from __future__ import annotations

import errno
import socket
from typing import Final

from relaydesk.config.listen import Listen
from relaydesk.core.errors import EnvError, LocalError

BACKLOG: Final = 512


def bind(listen: Listen) -> list[socket.socket]:
    """Listening sockets for ``listen``: one, or two where IPv4 and IPv6 need one each.

    Raises `EnvError` ``port_in_use``, or `LocalError` ``bad_setting`` for an address that is not ours.
    """
    if listen.host:
        addresses = _addresses(listen)
        # With port 0 a second socket would get another port: then one address must do.
        return _bind_all(addresses if listen.port else addresses[:1], listen)
    # Every interface: one dual-stack socket where IPv6 exists, else IPv4 alone.
    if socket.has_dualstack_ipv6():
        try:
            sock = socket.create_server(
                ("", listen.port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
            )
        except OSError as error:
            if error.errno != errno.EAFNOSUPPORT:
                raise _refusal(error, listen) from error
        else:
            sock.setblocking(False)
            return [sock]
    return [_bind_one(socket.AF_INET, ("", listen.port), listen)]


def _bind_all(
    addresses: list[tuple[socket.AddressFamily, tuple[str, int]]], listen: Listen
) -> list[socket.socket]:
    """All or none: a socket left open would hold the port for nobody."""
    bound: list[socket.socket] = []
    try:
        for family, address in addresses:
            bound.append(_bind_one(family, address, listen))
    except BaseException:
        for sock in bound:
            sock.close()
        raise
    return bound


def _addresses(listen: Listen) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
    """All addresses of the host, IPv4 first: ``localhost`` is two, and clients may try either."""
    try:
        found = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise LocalError(
            "bad_setting",
            f"RELAY_LISTEN={listen}: the host {listen.host!r} is not known here ({error.strerror})",
            "use an address of this machine, or :PORT for every interface",
            param="RELAY_LISTEN",
        ) from error
    unique = {(family, (str(address[0]), listen.port)): None for family, _, _, _, address in found}
    return sorted(unique, key=lambda each: each[0] != socket.AF_INET)


def _bind_one(family: socket.AddressFamily, address: tuple[str, int], listen: Listen) -> socket.socket:
    try:
        sock = socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        raise _refusal(error, listen) from error
    sock.setblocking(False)
    return sock


def _refusal(error: OSError, listen: Listen) -> EnvError | LocalError:
    if error.errno == errno.EADDRINUSE:
        return EnvError(
            "port_in_use",
            f"port {listen.port} is in use by another program",
            f"stop it (ss -ltnp 'sport = :{listen.port}' shows which), or choose another with --listen",
        )
    if error.errno == errno.EACCES:
        return EnvError(
            "port_in_use",
            f"port {listen.port} may only be opened by root",
            "choose one above 1023 with --listen, or grant CAP_NET_BIND_SERVICE",
        )
    return LocalError(
        "bad_setting",
        f"RELAY_LISTEN={listen} cannot be opened ({error.strerror})",
        "use an address of this machine, or :PORT for every interface",
        param="RELAY_LISTEN",
    )

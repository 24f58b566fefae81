"""The server's TLS context, whose certificate changes while it serves.

Connections are made with one outer context that never has a certificate; its server-name callback puts
the current inner context in its place. Loading a new pair into a context in use would be shorter, but
leaves the old key behind where the kind of key changes (RSA beside P-256), and a half-loaded pair where
the second file is bad.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.text import SafeText, safe_text
from relaydesk.core.tls.names import Name, covers, parse_name

# A scanner must be able to fill neither memory nor the log with names it made up.
MAX_UNKNOWN: Final = 64


def _bare_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_passphrase() -> bytes:
    # Without this OpenSSL asks for one on the terminal, and a headless node hangs.
    raise EnvError("tls_failed", "the key is encrypted", "give a key without a pass phrase")


def load_context(certificate: Path, key: Path | None = None) -> ssl.SSLContext:
    """A context with one certificate chain and key. Reads files: not on the loop. Raises ``tls_failed``."""
    context = _bare_context()
    try:
        context.load_cert_chain(certificate, key, password=_no_passphrase)
    except (OSError, ValueError) as exc:  # ssl.SSLError is an OSError
        raise EnvError(
            "tls_failed",
            f"the certificate {certificate} and its key {key or certificate} cannot be used "
            f"({safe_text(str(exc), 120)})",
            "give a PEM chain, leaf first, and the key that belongs to it",
        ) from exc
    return context


def silence_undecodable_names() -> None:
    """Keep a peer from writing tracebacks into the log. Call once, where the process is put together.

    A server name that is not ASCII fails inside the interpreter, before our callback: the handshake ends
    with an alert, as it should, but `sys.unraisablehook` prints a traceback for each.
    """
    previous = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is UnicodeDecodeError and isinstance(unraisable.object, bytes):
            return
        previous(unraisable)

    sys.unraisablehook = hook


class LiveContext:
    """``context`` is what listeners use, for good; `swap` changes what new handshakes get.

    A second certificate can be there for who asks for one of its names (`prefer`): one from a public
    authority for the domain, the hub's own for the names and addresses of the house.

    ``on_unknown`` is called once per server name that the current certificate is not for, in the thread
    of the handshake; it must not block.
    """

    def __init__(self, on_unknown: Callable[[SafeText], None]) -> None:
        self._on_unknown = on_unknown
        self._unknown: set[str] = set()
        self._current: ssl.SSLContext | None = None
        self._names: frozenset[Name] = frozenset()
        self._preferred: ssl.SSLContext | None = None
        self._preferred_names: frozenset[Name] = frozenset()
        self.context: Final = _bare_context()
        self.context.sni_callback = self._on_server_name

    def swap(self, inner: ssl.SSLContext, names: Iterable[Name]) -> None:
        """From now on new handshakes use ``inner``; connections that are open keep what they have."""
        self._names = frozenset(names)
        self._current = inner
        self._unknown = {name for name in self._unknown if not self._covered(name)}

    def prefer(self, inner: ssl.SSLContext, names: Iterable[Name]) -> None:
        """From now on new handshakes that ask for one of ``names`` use ``inner``."""
        self._preferred_names = frozenset(names)
        self._preferred = inner
        self._unknown = {name for name in self._unknown if not self._covered(name)}

    def _on_server_name(
        self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _context: ssl.SSLContext
    ) -> int | None:
        # Called for every handshake, also without a server name (clients that connect to an address).
        if self._current is None:
            return int(ssl.AlertDescription.ALERT_DESCRIPTION_INTERNAL_ERROR)
        if self._preferred is not None and name and _covers(self._preferred_names, name):
            connection.context = self._preferred
            return None
        connection.context = self._current
        if (
            name
            and name not in self._unknown
            and len(self._unknown) < MAX_UNKNOWN
            and not self._covered(name)
        ):
            self._unknown.add(name)
            self._on_unknown(safe_text(name))
        return None

    @property
    def names(self) -> frozenset[Name]:
        """What the current certificates are for."""
        return self._names | self._preferred_names

    def _covered(self, name: str) -> bool:
        return _covers(self.names, name)


def _covers(names: frozenset[Name], name: str) -> bool:
    try:
        return covers(names, parse_name(name))
    except LocalError:
        return False

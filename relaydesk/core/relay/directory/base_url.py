"""Where a node says that it is reached: what such a URL may look like, without asking any name server."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from relaydesk.core.errors import LocalError
from relaydesk.core.relay.dialable import public_address
from relaydesk.core.relay.directory.refusal import Refused
from relaydesk.core.tls.names import parse_name

# The room of the field that it stands in for (wire §6).
MAX_BYTES: Final = 248
_PATH: Final = re.compile(r"(?:/[A-Za-z0-9._~-]+)*")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_NETLOC: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]+))?")
# Names that never leave a machine or a home.
_LOCAL_SUFFIXES: Final = ("localhost", "local", "lan", "internal", "home.arpa")


def check_base_url(text: str, *, allow_private: bool) -> str:
    """``text`` where it is a base URL as it must stand in a record: exactly, without a slash at its end.

    Without ``allow_private`` only https and no host that can be seen to be private; what a name resolves to
    is checked where it is dialed. Raises `Refused` base_url.
    """
    if not text.isascii() or not text.isprintable() or len(text) > MAX_BYTES:
        raise _refused(f"is not plain ASCII of at most {MAX_BYTES} bytes")
    try:
        parts = urlsplit(text)
    except ValueError:
        raise _refused("cannot be read") from None
    found = _NETLOC.fullmatch(parts.netloc)
    if parts.scheme not in ("https", "http") or found is None:
        raise _refused("is not http(s)://HOST[:PORT][/PATH]")
    if text != f"{parts.scheme}://{parts.netloc}{parts.path}" or not _PATH.fullmatch(parts.path):
        raise _refused("has a query, a fragment, a slash at its end or unusual characters in its path")
    if any(set(segment) == {"."} for segment in parts.path.split("/") if segment):
        raise _refused("has dots for a part of its path")
    port = found["port"]
    if port is not None and not (_PORT.fullmatch(port) and 0 < int(port) < 65536):
        raise _refused("has no port from 1 to 65535")
    try:
        host = parse_name(found["host"])
    except LocalError:
        raise _refused("names no host") from None
    if not allow_private:
        _check_public(parts.scheme, str(host), literal=not isinstance(host, str))
    return text


def _check_public(scheme: str, host: str, *, literal: bool) -> None:
    if scheme != "https":
        raise _refused("is not https")
    if literal:
        if not public_address(host):
            raise _refused("leads to a private address")
    elif "." not in host or any(host == each or host.endswith("." + each) for each in _LOCAL_SUFFIXES):
        raise _refused("leads to a name that only a home knows")


def _refused(why: str) -> Refused:
    return Refused(
        "base_url", f"the base URL {why}", "set RELAY_PUBLIC_URL to what other nodes reach, https and public"
    )

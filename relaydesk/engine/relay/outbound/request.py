"""A request to another node as bytes: where it goes, its head, its body's framing. No sockets."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[!-\"$-~]*)?"
)
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t -~\x80-\xff]*")
_METHOD: Final = re.compile(r"[A-Z]+")
# What the client writes itself.
_OURS: Final = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "accept-encoding",
        "expect",
        "upgrade",
        "te",
    }
)


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int


def parts_of(url: str) -> tuple[Origin, str]:
    """Where a URL points and the rest of it as it stands. Raises `ValueError`."""
    found = _URL.fullmatch(url)
    if not found:
        raise ValueError("this is no http or https URL that can be asked for")
    scheme, port = found["scheme"], int(found["port"] or (443 if found["scheme"] == "https" else 80))
    if not 0 < port < 65536:
        raise ValueError("the URL's port does not exist")
    return Origin(scheme, found["host"].lower(), port), found["path"] or "/"


def head_of(
    origin: Origin, method: str, path: str, headers: Sequence[tuple[str, str]], length: int | None
) -> bytes:
    """A request's head. Raises `ValueError` for what would not stay one line each, or is not the caller's."""
    if not _METHOD.fullmatch(method):
        raise ValueError("the method is none")
    usual = origin.port == (443 if origin.scheme == "https" else 80)
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {origin.host}" if usual else f"Host: {origin.host}:{origin.port}",
        "Accept-Encoding: identity",
    ]
    for name, value in headers:
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value) or name.lower() in _OURS:
            raise ValueError("a header cannot be sent")
        lines.append(f"{name}: {value}")
    if length is None:
        lines.append("Transfer-Encoding: chunked")
    elif length or method != "GET":
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def framed(body: AsyncIterator[bytes], length: int | None) -> AsyncIterator[bytes]:
    """An iterated body as it goes over the wire. Raises `ValueError` where it is not ``length`` bytes."""
    sent = 0
    async for piece in body:
        if not piece:
            continue
        sent += len(piece)
        if length is not None and sent > length:
            raise ValueError("the body is longer than announced")
        yield b"%x\r\n%b\r\n" % (len(piece), piece) if length is None else piece
    if length is None:
        yield b"0\r\n\r\n"
    elif sent < length:
        raise ValueError("the body is shorter than announced")

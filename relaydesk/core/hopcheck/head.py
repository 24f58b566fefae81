"""The head of an HTTP/1.1 answer as it came: header case, order and duplicates are what is looked at."""

from __future__ import annotations

from dataclasses import dataclass

from relaydesk.core.hopcheck.model import Headers


@dataclass(frozen=True, slots=True)
class Head:
    """``length`` is None where the head states none; ``chunked`` where the body comes in chunks."""

    status: int
    headers: Headers
    length: int | None
    chunked: bool


def parse_head(data: bytes) -> Head:
    """A status line and its headers, up to and without the empty line. Raises `ValueError`."""
    line, *fields = data.decode("latin-1").split("\r\n")
    version, _, rest = line.partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not (status.isascii() and status.isdigit() and len(status) == 3):
        raise ValueError("this is no HTTP/1.1 answer")
    headers: list[tuple[str, str]] = []
    for field in fields:
        name, colon, value = field.partition(":")
        if not colon or not name or name != name.strip():
            raise ValueError("its headers cannot be read")
        headers.append((name, value.strip(" \t")))
    lengths = {value for name, value in headers if name.lower() == "content-length"}
    if len(lengths) > 1 or any(not (each.isascii() and each.isdigit()) or len(each) > 15 for each in lengths):
        raise ValueError("its length cannot be read")
    chunked = any(
        name.lower() == "transfer-encoding" and value.lower().endswith("chunked") for name, value in headers
    )
    length = int(next(iter(lengths))) if lengths and not chunked else None
    return Head(int(status), tuple(headers), length, chunked)


def bodiless(method: str, status: int) -> bool:
    """Whether an answer has no body whatever its head says (RFC 9112 §6.3)."""
    return method == "HEAD" or status in (204, 304) or 100 <= status < 200

"""The types a setting can have: how each is read, shown, and explained when it is wrong."""

from __future__ import annotations

import ipaddress
import os.path
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar
from urllib.parse import urlsplit

from relaydesk.config.listen import Listen, parse_listen
from relaydesk.core.access.credit import CREDIT_ALLOWED, parse_credit
from relaydesk.core.errors import LocalError
from relaydesk.core.tls.names import parse_name

T = TypeVar("T")

FOREVER: Final = -1.0
_DURATION: Final = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,6})?(?:ms|[hms]))+")
_DURATION_PART: Final = re.compile(r"([0-9.]+)(ms|[hms])")
_UNIT_MS: Final = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_SEGMENT: Final = re.compile(r"[A-Za-z0-9._~-]+")
_EMAIL: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_INTEGER: Final = re.compile(r"-?[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One type of setting.

    ``parse`` raises `ValueError`; ``show`` is its inverse; ``allowed`` completes "give …"; ``toml`` lists
    the TOML types beside a string that mean the same (a list is read as its comma-joined text). ``metavar``
    stands for a value in a line of help.
    """

    parse: Callable[[str], T]
    allowed: str
    show: Callable[[T], str] = str
    toml: tuple[type, ...] = ()
    metavar: str = "VALUE"


def parse_duration(text: str) -> float:
    """Seconds of a Go-style duration (``90s``, ``10m``, ``1h30m``, ``250ms``; ``0`` needs no unit)."""
    if text == "0":
        return 0.0
    if not _DURATION.fullmatch(text):
        raise ValueError("not a duration")
    return sum(float(number) * _UNIT_MS[unit] for number, unit in _DURATION_PART.findall(text)) / 1000


def show_duration(seconds: float) -> str:
    """The shortest Go-style text of a whole number of milliseconds."""
    if seconds == FOREVER:
        return "forever"
    left = round(seconds * 1000)
    parts = []
    for unit, size in _UNIT_MS.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def duration(least: str, most: str, *, forever: bool = False) -> Kind[float]:
    """Seconds between two durations; with ``forever`` also that word or ``-1``, read as `FOREVER`."""
    low, high = parse_duration(least), parse_duration(most)

    def parse(text: str) -> float:
        if forever and text in {"forever", "-1"}:
            return FOREVER
        value = parse_duration(text)
        if not low <= value <= high:
            raise ValueError("out of range")
        return value

    also = ", or forever" if forever else ""
    allowed = f"a duration from {least} to {most} such as 90s, 10m or 1h30m{also}"
    return Kind(parse, allowed, show_duration, metavar="TIME")


def integer(least: int, most: int, unit: str = "") -> Kind[int]:
    """A whole number in a closed range."""

    def parse(text: str) -> int:
        if not _INTEGER.fullmatch(text) or not least <= int(text) <= most:
            raise ValueError("not a whole number in range")
        return int(text)

    return Kind(parse, f"a whole number{unit} from {least} to {most}", toml=(int,), metavar="N")


def credit() -> Kind[int]:
    """An amount of microunits, also given in USD."""
    return Kind(parse_credit, CREDIT_ALLOWED, toml=(int,), metavar="AMOUNT")


def optional(kind: Kind[T]) -> Kind[T | None]:
    """The same kind, where an empty text means that nothing was chosen."""

    def parse(text: str) -> T | None:
        return kind.parse(text) if text else None

    def show(value: T | None) -> str:
        return "" if value is None else kind.show(value)

    return Kind(parse, kind.allowed, show, kind.toml, kind.metavar)


def choice(*words: str) -> Kind[str]:
    """One of a few words, in any case."""

    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError("not one of them")
        return text.lower()

    allowed = " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
    return Kind(parse, allowed, metavar="|".join(words))


def _parse_path(text: str) -> Path:
    if not text or "\0" in text:
        raise ValueError("not a path")
    try:
        return Path(text).expanduser()
    except RuntimeError as exc:
        raise ValueError("no such user") from exc


def path() -> Kind[Path | None]:
    """A path; `load` makes it absolute. Empty means none."""
    return optional(Kind(_parse_path, "a path", metavar="PATH"))


def resolve(value: T, base: str) -> T | Path:
    """A relative path against the directory it was written for; every other value as it is."""
    return Path(os.path.abspath(os.path.join(base, value))) if isinstance(value, Path) else value


def split_list(text: str) -> list[str]:
    """Items between commas or white space, the empty ones dropped."""
    return text.replace(",", " ").split()


def names() -> Kind[tuple[str, ...]]:
    """DNS names and IP addresses, each once, in the order given."""

    def parse(text: str) -> tuple[str, ...]:
        try:
            return tuple(dict.fromkeys(str(parse_name(item)) for item in split_list(text)))
        except LocalError as error:
            raise ValueError(error.fault.message) from None

    return Kind(parse, "DNS names and IP addresses with commas between them", ",".join, (list,), "NAMES")


def _parse_domain(text: str) -> str:
    wildcard = text.startswith("*.")
    name = parse_name(text[2:] if wildcard else text)
    if not isinstance(name, str) or "." not in name or "_" in name:
        raise ValueError("not a domain")
    return f"*.{name}" if wildcard else name


def domains() -> Kind[tuple[str, ...]]:
    """Full DNS names, ``*.`` before a name meaning every name right below it; each once."""

    def parse(text: str) -> tuple[str, ...]:
        try:
            return tuple(dict.fromkeys(map(_parse_domain, split_list(text))))
        except LocalError as error:
            raise ValueError(error.fault.message) from None

    allowed = "full DNS names such as hub.example.org with commas between them"
    return Kind(parse, allowed, ",".join, (list,), "DOMAINS")


def _parse_https(text: str) -> str:
    parts = urlsplit(text)
    if (
        parts.scheme != "https"
        or not parts.hostname
        or parts.username
        or not text.isprintable()
        or " " in text
    ):
        raise ValueError("not an https URL")
    _ = parts.port  # raises for one out of range
    return text


def https_url() -> Kind[str]:
    """An address that is only spoken to over TLS."""
    return Kind(_parse_https, "an https:// URL", metavar="URL")


def _parse_base_url(text: str) -> str:
    parts = urlsplit(text)
    if (
        parts.scheme not in ("https", "http")
        or not parts.hostname
        or parts.username is not None
        or parts.password is not None
        or parts.query
        or parts.fragment
        or not (text.isascii() and text.isprintable())
        or " " in text
        or ".." in parts.path
    ):
        raise ValueError("not a base URL")
    _ = parts.port  # raises for one out of range
    base = text.rstrip("/?#")
    if len(base) > 248:
        raise ValueError("longer than 248 bytes")
    return base


def base_url() -> Kind[str]:
    """Where a node is reached, without a slash at its end (at most 248 bytes, wire §6); empty: nowhere."""

    def parse(text: str) -> str:
        return _parse_base_url(text) if text else ""

    return Kind(parse, "an http(s):// URL without query, of at most 248 bytes", metavar="URL")


def _parse_email(text: str) -> str:
    if not _EMAIL.fullmatch(text):
        raise ValueError("not a mail address")
    return text


def email() -> Kind[str]:
    """A mail address; empty means none."""

    def parse(text: str) -> str:
        return _parse_email(text) if text else ""

    return Kind(parse, "a mail address such as you@example.org", metavar="ADDRESS")


def address() -> Kind[str]:
    """An IP address; empty means none."""

    def parse(text: str) -> str:
        try:
            return str(ipaddress.ip_address(text)) if text else ""
        except ValueError:
            raise ValueError("not an IP address") from None

    return Kind(parse, "an IP address such as 192.0.2.7", metavar="ADDRESS")


def items(parse_item: Callable[[str], str], allowed: str, metavar: str) -> Kind[tuple[str, ...]]:
    """Several values of one sort, each once, in the order given. ``parse_item`` raises `ValueError`."""

    def parse(text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(parse_item(item) for item in split_list(text)))

    return Kind(parse, allowed, ",".join, (list,), metavar)


def _parse_mount(text: str) -> str:
    parts = [part for part in text.split("/") if part]
    if not all(_SEGMENT.fullmatch(part) and part.strip(".") for part in parts) or parts[:1] in (
        ["v1"],
        ["api"],
    ):
        raise ValueError("not a path to mount at")
    return "".join(f"/{part}" for part in parts)


def mount() -> Kind[str]:
    """A URL path that something is mounted at, without a slash at its end; empty means the root."""
    return Kind(_parse_mount, "a path such as /relay, not below /v1 or /api", metavar="PATH")


def listen() -> Kind[Listen]:
    """An address to bind to."""
    return Kind(parse_listen, "host:port, [v6]:port, or :port for every interface", metavar="HOST:PORT")


def _parse_secret(text: str) -> str:
    # It travels in an HTTP header: visible ASCII only. The upper bound keeps a wrong file from being a key.
    if not (1 <= len(text) <= 512 and all("!" <= char <= "~" for char in text)):
        raise ValueError("not a key")
    return text


def secret() -> Kind[str]:
    """A key or token; empty means none."""

    def parse(text: str) -> str:
        return _parse_secret(text) if text else ""

    return Kind(parse, "1 to 512 visible ASCII characters without spaces")

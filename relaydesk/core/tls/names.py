"""Which names and addresses the hub's own authority may vouch for, and which of them a leaf carries.

The authority is trusted by people's editors and agents, so its certificate is constrained (RFC 5280
§4.2.1.10) to what can only be at home: private ranges and local suffixes, the host's short name, and the
names the operator gave before the authority was made. Verifiers reject the whole leaf for one name
outside, therefore nothing outside may ever get into one.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from relaydesk.core.errors import LocalError
from relaydesk.core.text import safe_text

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Name = str | Address
"""A DNS name is a lower-case ASCII ``str`` without a trailing dot; an address is an `ipaddress` object."""

HOME_DOMAINS: Final = ("localhost", "local", "lan", "home.arpa", "internal", "ts.net")
# Suffixes under which home routers, mDNS and resolvers publish a machine by its short name. `ts.net` is
# not among them: there the tailnet's own label stands between, which only the operator knows.
HOST_SUFFIXES: Final = ("local", "lan", "home.arpa", "internal")
HOME_NETWORKS: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",  # RFC 1918
        "100.64.0.0/10",  # CGNAT, RFC 6598: overlay networks number their members here
        "169.254.0.0/16", "fe80::/10",  # link-local
        "fc00::/7",  # unique local, RFC 4193
        "127.0.0.0/8", "::1/128",
    )
)  # fmt: skip
# A machine with hundreds of container bridges has as many link-local addresses; a leaf stays a few KiB.
MAX_ADDRESSES: Final = 64

_MAX_NAME: Final = 253
# Underscore is no host name by RFC 952, but container and router names carry it and verifiers accept it.
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# Browsers read a host whose last label is a number as an IPv4 address in an old spelling.
_NUMERIC: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_SEPARATORS: Final = re.compile(r"[\s,;]+")


@dataclass(frozen=True, slots=True)
class Constraints:
    """The permitted subtrees of an authority: a DNS entry covers itself and every name below it."""

    domains: tuple[str, ...]
    networks: tuple[Network, ...]


@dataclass(frozen=True, slots=True)
class LeafNames:
    """What a leaf carries, in a stable order, and what had to stay out because it is not permitted.

    ``refused`` are names as they came, safe to show; ``refused_extra`` those of them the operator asked for.
    """

    names: tuple[Name, ...]
    refused: tuple[str, ...]
    refused_extra: tuple[str, ...]


def parse_address(text: str) -> Address | None:
    """An IP address in any usual spelling (brackets, zone, IPv4-mapped), or None where it is none."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        address = ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def parse_name(text: str) -> Name:
    """A host name or address as a certificate would carry it.

    International names become their ASCII form. Raises `LocalError` ``bad_setting`` for anything a
    certificate or a verifier would misread: wildcards, ports, URLs, numeric last labels.
    """
    cleaned = text.strip()
    address = parse_address(cleaned)
    if address is not None:
        return address
    name = cleaned.lower().removesuffix(".")
    if not name.isascii() and len(name) <= _MAX_NAME:
        try:
            name = name.encode("idna").decode("ascii").lower()
        except UnicodeError:
            name = ""
    labels = name.split(".")
    if (
        len(name) > _MAX_NAME
        or not all(_LABEL.fullmatch(label) for label in labels)
        or _NUMERIC.fullmatch(labels[-1])
    ):
        raise LocalError(
            "bad_setting",
            f"{safe_text(text, 80)!r} in RELAY_TLS_NAMES is not a host name or IP address",
            "write names such as hub.internal or 192.168.1.5 between commas, without https://, port or *",
            param="RELAY_TLS_NAMES",
        )
    return name


def parse_names(text: str) -> tuple[Name, ...]:
    """The value of ``RELAY_TLS_NAMES``: names and addresses between commas or spaces, each once."""
    return tuple(dict.fromkeys(parse_name(part) for part in _SEPARATORS.split(text) if part))


def short_name(hostname: str) -> str | None:
    """The first label of a host name, or None where it is not usable as a name."""
    try:
        name = parse_name(hostname.partition(".")[0])
    except LocalError:
        return None
    return name if isinstance(name, str) else None


def home_constraints(hostname: str, extra: Iterable[Name] = ()) -> Constraints:
    """The constraints of a new authority.

    Entries are bare (``local``, not ``.local``): RFC 5280 gives only that form a meaning for DNS names,
    and a verifier that keeps to it rejects everything under a leading dot.
    """
    domains: list[str] = list(HOME_DOMAINS)
    networks: list[Network] = list(HOME_NETWORKS)
    short = short_name(hostname)
    for name in ([short] if short else []) + list(extra):
        if permitted(name, Constraints(tuple(domains), tuple(networks))):
            continue
        if isinstance(name, str):
            domains.append(name)
        else:
            networks.append(ipaddress.ip_network(name))
    return Constraints(tuple(domains), tuple(networks))


def permitted(name: Name, constraints: Constraints) -> bool:
    """Whether a verifier accepts ``name`` under an authority with these constraints."""
    if isinstance(name, str):
        parsed = parse_address(name)
        if parsed is None:
            lowered = name.lower().removesuffix(".")
            return any(lowered == base or lowered.endswith("." + base) for base in constraints.domains)
        name = parsed
    return any(name.version == network.version and name in network for network in constraints.networks)


def leaf_names(
    hostname: str, addresses: Iterable[Address], extra: Iterable[Name], constraints: Constraints
) -> LeafNames:
    """Every name and address of this machine that its authority may vouch for.

    ``hostname`` as the system gives it, ``addresses`` of its interfaces, ``extra`` from RELAY_TLS_NAMES.
    """
    asked = tuple(dict.fromkeys(extra))
    names: list[Name] = ["localhost"]
    bad: list[str] = []
    short = short_name(hostname)
    if short:
        names += [short, *(f"{short}.{suffix}" for suffix in HOST_SUFFIXES)]
    if hostname and (short is None or "." in hostname):
        try:
            names.append(parse_name(hostname))
        except LocalError:
            bad.append(safe_text(hostname, 80))
    loopback: list[Name] = [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]
    own = sorted(set(addresses), key=lambda a: (a.is_link_local, a.version, int(a)))
    inside: list[Name] = [a for a in own if permitted(a, constraints)]
    outside = [str(a) for a in own if not permitted(a, constraints)]
    wanted = list(dict.fromkeys([*names, *asked, *loopback, *inside[:MAX_ADDRESSES]]))
    return LeafNames(
        names=tuple(name for name in wanted if permitted(name, constraints)),
        refused=tuple([str(name) for name in wanted if not permitted(name, constraints)] + bad + outside),
        refused_extra=tuple(str(name) for name in asked if not permitted(name, constraints)),
    )


def covers(names: Iterable[Name], wanted: Name) -> bool:
    """Whether a certificate with these names is right for ``wanted``; ``*`` stands for one whole label."""
    known = set(names)
    if wanted in known:
        return True
    if not isinstance(wanted, str):
        return False
    parent = wanted.partition(".")[2]
    return "." in parent and f"*.{parent}" in known


def outside_error(refused: Iterable[str]) -> LocalError:
    """Why names the operator added later cannot be served, and the two ways out."""
    listed = ", ".join(safe_text(name, 80) for name in refused)
    return LocalError(
        "bad_setting",
        f"the hub's CA was made without {listed} and may not vouch for it (RELAY_TLS_NAMES)",
        "either serve a certificate of your own (RELAY_TLS_CERT and RELAY_TLS_KEY) or one from ACME "
        "(RELAY_TLS_DOMAIN), or make a new CA that covers it with `relaydesk tls renew-ca`, which every "
        "client must then trust anew",
        param="RELAY_TLS_NAMES",
    )

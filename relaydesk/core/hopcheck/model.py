"""What a check of an edge is about: layers, what was seen at them, and what is found. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from relaydesk.core.view.hopcheck import LayerKind, Severity

Kind = Literal["", "resolve", "refused", "timeout", "tls", "broken"]
"""Why there was no answer; empty where there was one."""

Headers = tuple[tuple[str, str], ...]

# Of an answer's body so much is kept: enough to see whose words they are.
MOST_BODY: Final = 4096


@dataclass(frozen=True, slots=True)
class Layer:
    """One place at which the node is reached; ``url`` is a base URL without a slash at its end."""

    name: str
    url: str
    kind: LayerKind


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and what came back. ``status`` 0: no answer, and ``kind`` and ``problem`` say why.

    Header names are as they came. ``sent`` are the bytes of the request's body, ``body`` the beginning of the
    answer's.
    """

    method: str
    url: str
    request: Headers = ()
    sent: int = 0
    status: int = 0
    headers: Headers = ()
    body: bytes = b""
    kind: Kind = ""
    problem: str = ""
    protocol: str = "HTTP/1.1"
    took_ms: int = 0

    def values(self, name: str) -> tuple[str, ...]:
        """Every value of a header of the answer, whatever its case."""
        return tuple(value for each, value in self.headers if each.lower() == name.lower())

    def value(self, name: str) -> str:
        """The first of them, empty for none."""
        return next(iter(self.values(name)), "")


@dataclass(frozen=True, slots=True)
class Place:
    """One address of a name: ``own`` is one of this machine's, ``public`` one that the world can dial."""

    address: str
    own: bool
    public: bool


@dataclass(frozen=True, slots=True)
class Trust:
    """What a TLS handshake showed: ``why`` it is not trusted (empty: it is), seconds it is valid yet, and the
    protocol that was agreed on (``h2``, ``http/1.1`` or empty)."""

    why: str = ""
    valid_s: int | None = None
    alpn: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one probe saw at one layer. ``untested`` says why it saw nothing.

    ``exchanges``: aspect and exchange. ``arrivals``: when the chunks of a timed answer came, in ms from its
    head, ``gap_ms`` apart when they were sent.
    """

    probe: str
    layer: str
    exchanges: tuple[tuple[str, Exchange], ...] = ()
    untested: str = ""
    places: tuple[Place, ...] = ()
    trust: Trust | None = None
    arrivals: tuple[int, ...] = ()
    gap_ms: int = 0
    took_ms: int = 0

    def exchange(self, aspect: str) -> Exchange | None:
        """The exchange of an aspect, where there was one."""
        return next((found for name, found in self.exchanges if name == aspect), None)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong at a layer, shown by ``probe``. ``aspect`` is where it shows: a fault outwards
    of another of the same family and aspect is only its consequence."""

    code: str
    probe: str
    aspect: str
    sentence: str
    exchange: Exchange | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault laid at a layer, with what callers make of it and what to change.

    ``layer`` and ``product`` are empty where nobody can be blamed, or nothing is known.
    """

    code: str
    severity: Severity
    title: str
    layer: str
    product: str
    evidence: tuple[str, ...]
    effect: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a check came to."""

    layers: tuple[Layer, ...]
    observations: tuple[Observation, ...]
    findings: tuple[Finding, ...]
    products: dict[str, str] = field(default_factory=dict)
    inside: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        """Whether nothing stands against the edge."""
        return not self.findings

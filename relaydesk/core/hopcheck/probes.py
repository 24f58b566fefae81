"""The probes of an edge: what each sends, what is expected of the answer, and how long it may take.

``nonce`` marks those that need timed answers of the node itself. The quick ones run side by side and are over
in ten seconds where something answers; where nothing does, the first says so and the others are not sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MIB: Final = 1_048_576
# No whole check of the quick probes lasts longer, whatever the layers do.
QUICK_S: Final = 25.0
# To find out whether there is anybody at all: name, connection, TLS, first answer.
REACH_S: Final = 8.0
# One exchange of a quick probe, from the connection to the last byte of the answer.
EXCHANGE_S: Final = 7.0
# A large body may take as long as the quick check has; what is not over by then is not tested.
BODY_S: Final = 6.0
# With the long silences there is time for slow lines.
LONG_BODY_S: Final = 60.0
BODIES: Final = (MIB + 64 * 1024, 12 * MIB)
# Timed chunks: so many, so far apart.
CHUNKS: Final = 6
GAP_MS: Final = 200
# Silences before the answer's head, in seconds: below and above what proxies commonly allow (60 and 100 s).
SILENCES: Final = (20.0, 65.0, 125.0)
# What an answer after a silence may take beyond it.
SILENCE_SLACK_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe. ``sends`` and ``expects`` are for people."""

    id: str
    title: str
    sends: str
    expects: str
    seconds: float = EXCHANGE_S
    nonce: bool = False


PROBES: Final = (
    Probe("name", "where the name leads", "a look-up of the name", "an address of the world", 5.0),
    Probe(
        "reach", "a connection and an answer", "a relay POST with a bad target", "any HTTP answer", REACH_S
    ),
    Probe("tls", "a certificate that the system trusts", "a TLS handshake", "a trusted chain", 5.0),
    Probe("version", "the advertised version", "GET /v1/zs/details", "this node's details, unmarked"),
    Probe("refusal", "the marker on a refusal", "a relay POST with a bad target", "400, marked"),
    Probe(
        "error",
        "the marker on an error",
        "a relay POST to a target that nobody lists; with a nonce one that is answered with 502",
        "404 and 502 in the node's own words, marked",
    ),
    Probe(
        "success",
        "the marker on a success",
        "another operator's details through this relay; else the timed answer",
        "200, marked",
    ),
    Probe(
        "preflight", "a browser's preflight", "OPTIONS with an Origin", "any origin and the relay's headers"
    ),
    Probe(
        "exposed", "the marker readable by a browser", "a relay POST with an Origin", "X-Zs-Relay-Hop exposed"
    ),
    Probe(
        "stream",
        "a stream that is not held back",
        "a relay POST answered with timed chunks",
        "each chunk when it was sent",
        nonce=True,
    ),
    Probe("body", "bodies up to 12 MiB", "relay POSTs of 1.06 and 12 MiB", "the node's own answer", BODY_S),
    Probe(
        "compression",
        "answers are not compressed",
        "a relay POST that would take gzip",
        "an answer without Content-Encoding",
    ),
    Probe(
        "headers",
        "headers arrive as they were sent",
        "a relay POST answered with each of the network's headers, one of them twice",
        "all of them",
        nonce=True,
    ),
    Probe("http2", "HTTP/2 at the edge", "the refusal over HTTP/2", "the same answer, marked"),
    Probe("websocket", "WebSocket upgrades", "nothing yet", "nothing yet", 0.0),
)
SILENCE: Final = "silence"
OUTSIDE: Final = Probe(
    "outside", "seen by a peer", "a peer's relay POST with a bad target", "400, marked", 20.0
)
BY_ID: Final = {probe.id: probe for probe in (*PROBES, OUTSIDE)}
WEBSOCKET_UNTESTED: Final = "relaydesk has no WebSocket of its own yet"
LONG_UNTESTED: Final = "only with --long"
NONCE_UNTESTED: Final = "needs a nonce of the node (`relaydesk check-hop --new-nonce` there, --nonce here)"


def silence_id(seconds: float) -> str:
    """The id of the probe with a silence of so many seconds: ``silence-20``."""
    return f"{SILENCE}-{seconds:g}"


def silence_probe(seconds: float) -> Probe:
    """The probe with a silence of so many seconds."""
    return Probe(
        silence_id(seconds),
        f"a silence of {seconds:g} s",
        f"a relay POST that is answered after {seconds:g} s",
        "the node's own answer",
        seconds + SILENCE_SLACK_S,
        nonce=True,
    )


def probes_of(kind: str, silences: tuple[float, ...], *, outside: bool = False) -> tuple[Probe, ...]:
    """The probes of a layer of this kind, in the order in which people read them."""
    # The node's own doors have no name to look up, and certificates there are for the public name.
    left_out = (
        {"name", "tls", "http2"} if kind in ("loopback", "lan") else {"name"} if kind == "via" else set()
    )
    peers = (OUTSIDE,) if outside and kind == "public" else ()
    quick = tuple(probe for probe in PROBES if probe.id not in left_out)
    return (*quick, *map(silence_probe, silences), *peers)

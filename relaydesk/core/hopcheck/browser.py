"""What a page of another origin may read of a relay's answers (wire §1.4; the Fetch standard's CORS check).

A header that is not exposed looks to a page as one that was not sent, so that an edge that rewrites these
headers takes the marker away for browsers alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from relaydesk.core.hopcheck.model import Exchange, Fault
from relaydesk.core.relay.hop import HOP_HEADER, METHOD_HEADER, NODE_HEADER, PATH_HEADER, TARGET_HEADER

ORIGIN: Final = "https://page.example"
# What a page of a caller asks to send, in the order and case of a browser's preflight.
REQUESTED: Final = tuple(
    sorted(name.lower() for name in ("Content-Type", TARGET_HEADER, NODE_HEADER, PATH_HEADER, METHOD_HEADER))
)


def preflight_faults(answer: Exchange) -> Iterator[Fault]:
    """Why a browser would not send the request after this preflight."""

    def refused(aspect: str, why: str) -> Fault:
        return Fault("preflight_refused", "preflight", aspect, why, answer)

    if not 200 <= answer.status < 300:
        yield refused("status", f"the preflight gets {answer.status}")
        return
    if why := _origin_problem(answer):
        yield Fault("origin_refused", "preflight", "preflight", why, answer)
    methods = _listed(answer, "Access-Control-Allow-Methods")
    if not methods & {"*", "post"}:
        yield refused("method", "POST is not among the methods it allows")
    allowed = _listed(answer, "Access-Control-Allow-Headers")
    missing = [] if "*" in allowed else [name for name in REQUESTED if name not in allowed]
    if missing:
        yield refused("headers", f"it does not allow {', '.join(missing)}")


def answer_faults(aspect: str, answer: Exchange) -> Iterator[Fault]:
    """Why a page cannot read this answer's marker; whether the marker is there is another question."""
    if why := _origin_problem(answer):
        yield Fault("origin_refused", "exposed", aspect, why, answer)
        return
    exposed = _listed(answer, "Access-Control-Expose-Headers")
    if not exposed & {"*", HOP_HEADER.lower()}:
        names = ", ".join(answer.values("Access-Control-Expose-Headers"))[:120] or "nothing"
        yield Fault("marker_not_exposed", "exposed", aspect, f"exposed is {names}", answer)


def _origin_problem(answer: Exchange) -> str:
    origins = answer.values("Access-Control-Allow-Origin")
    if not origins:
        return "Access-Control-Allow-Origin is missing"
    # A browser joins them, and takes nothing but one value that is exactly right.
    joined = ", ".join(origins)
    if joined.strip() not in ("*", ORIGIN):
        return f"Access-Control-Allow-Origin is {joined[:120]!r}"
    return ""


def _listed(answer: Exchange, name: str) -> set[str]:
    return {item.strip().lower() for value in answer.values(name) for item in value.split(",")} - {""}

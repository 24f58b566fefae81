"""What this node thinks of one relay, by its own evidence (wire §3.3, design §6).

A demoted relay goes to the tier that is used only where nothing better is; it is never shut out. Our numbers,
which the wire does not publish (§8.4):

- three failures in a row that are the relay's demote it for 10 minutes, three stale details in a row as well;
- one failure to reach it at all demotes it for 2 minutes;
- each demotion within an hour of the last lasts twice as long, an hour at most.

A demotion ends at its time or with the first answer of a target that comes back through the relay, one for
stale details with the first fresh ones. A streak ends only that way: while it stands, one more failure after
the time demotes again. What nobody is charged for leaves no mark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

from relaydesk.core.relay.blame import RULES, Verdict
from relaydesk.core.relay.ref import NodeRef

THRESHOLD: Final = 3
FAULTS_S: Final = 600.0
UNREACHABLE_S: Final = 120.0
LONGEST_S: Final = 3600.0
# Without a demotion for this long, the next one is short again.
CALM_S: Final = 3600.0
MOST_EVIDENCE: Final = 16

Cause = Literal["faults", "unreachable", "stale"]
Credit = Literal["success", "fault", "unreachable"]

_LENGTHS: Final[dict[Cause, float]] = {
    "faults": FAULTS_S,
    "unreachable": UNREACHABLE_S,
    "stale": FAULTS_S,
}


class At(NamedTuple):
    """A moment twice: ``mono`` in seconds that only go forward, ``wall_ms`` since 1970 for people."""

    mono: float
    wall_ms: int


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing that a relay did. ``status`` is 0 where it gave no answer, ``rule`` an id of `blame.RULES`.

    It names the target and never a client.
    """

    at_ms: int
    target: NodeRef
    status: int
    code: str
    marker: bool
    rule: str


@dataclass(frozen=True, slots=True)
class Demotion:
    """Why and how long. ``until`` is on the clock that only goes forward; ``evidence`` is what led to it."""

    cause: Cause
    since: At
    until: float
    count: int
    evidence: Observation


@dataclass(frozen=True, slots=True)
class Reputation:
    """The state of one relay. ``faults`` and ``stale`` are the two streaks; ``level`` is how often the length
    of a demotion was doubled; ``evidence`` is what went wrong, oldest first, at most `MOST_EVIDENCE`."""

    faults: int = 0
    stale: int = 0
    level: int = 0
    demotion: Demotion | None = None
    evidence: tuple[Observation, ...] = ()
    last: Observation | None = None
    last_success_ms: int | None = None


NEW: Final = Reputation()


def demoted(reputation: Reputation, now: float) -> bool:
    """Whether the relay is in the fallback tier at this time (seconds of the clock that goes forward)."""
    return reputation.demotion is not None and now < reputation.demotion.until


def success(reputation: Reputation, at: At, seen: Observation) -> Reputation:
    """A target's own answer came back through the relay, in a background probe too."""
    demotion = reputation.demotion
    # A relay that hands out stale details answers all the time: that alone does not clear it.
    if demotion is not None and demotion.cause != "stale":
        demotion = _ended(demotion, at)
    return replace(reputation, faults=0, demotion=demotion, last=seen, last_success_ms=at.wall_ms)


def fault(reputation: Reputation, at: At, seen: Observation) -> Reputation:
    """A failure that is the relay's own."""
    noted = _noted(replace(reputation, faults=reputation.faults + 1), seen)
    return _demote(noted, "faults", noted.faults, at, seen) if noted.faults >= THRESHOLD else noted


def unreachable(reputation: Reputation, at: At, seen: Observation) -> Reputation:
    """The relay could not be reached at all: no name, no connection, no TLS. Counts as a failure too."""
    noted = _noted(replace(reputation, faults=reputation.faults + 1), seen)
    noted = _demote(noted, "unreachable", noted.faults, at, seen)
    return _demote(noted, "faults", noted.faults, at, seen) if noted.faults >= THRESHOLD else noted


def stale(reputation: Reputation, at: At, seen: Observation) -> Reputation:
    """Details that came through the relay were stale. They are used nonetheless."""
    noted = _noted(replace(reputation, stale=reputation.stale + 1), seen)
    return _demote(noted, "stale", noted.stale, at, seen) if noted.stale >= THRESHOLD else noted


def fresh(reputation: Reputation, at: At) -> Reputation:
    """Details that came through the relay were fresh."""
    demotion = reputation.demotion
    if demotion is not None and demotion.cause == "stale":
        demotion = _ended(demotion, at)
    return replace(reputation, stale=0, demotion=demotion)


def credit_of(verdict: Verdict, status: int, code: str, *, connected: bool, aborted: bool) -> Credit | None:
    """What an attempt's narrowed verdict means for its relay, None for nothing at all.

    ``connected`` is false where no connection to the relay came about. ``aborted`` is our own cancel or
    deadline, which charges nobody. Success is any code that is not the relay's, and any 2xx. A target's
    failure is a claim: it charges the relay only once another has refuted it.
    """
    if verdict.attribution == "relay":
        return "fault" if connected or status else "unreachable"
    if aborted or verdict.attribution != "none":
        return None
    return "success" if code or 200 <= status < 300 else None


def credit(reputation: Reputation, kind: Credit | None, at: At, seen: Observation) -> Reputation:
    """The state after what `credit_of` said; unchanged for None."""
    if kind is None:
        return reputation
    step = {"success": success, "fault": fault, "unreachable": unreachable}[kind]
    return step(reputation, at, seen)


def explain(reputation: Reputation, at: At) -> str:
    """One sentence from stored evidence: why the relay is where it is, since when and until when (UTC)."""
    demotion = reputation.demotion
    if demotion is not None and at.mono < demotion.until:
        until_ms = at.wall_ms + round((demotion.until - at.mono) * 1000)
        since, until = _clock(demotion.since.wall_ms), _clock(until_ms)
        seen = demotion.evidence
        return f"Demoted since {since} until {until} UTC: {_cause(demotion)}, the last {_told(seen)}."
    if not reputation.faults and not reputation.stale:
        return "In use: nothing speaks against it."
    seen = reputation.evidence[-1]
    streaks = f"{min(reputation.faults, THRESHOLD)} of {THRESHOLD} failures"
    if reputation.stale:
        streaks += f" and {min(reputation.stale, THRESHOLD)} of {THRESHOLD} stale details"
    return f"In use with {streaks} in a row, the last at {_clock(seen.at_ms)} UTC {_told(seen)}."


def _noted(reputation: Reputation, seen: Observation) -> Reputation:
    return replace(reputation, evidence=(*reputation.evidence, seen)[-MOST_EVIDENCE:], last=seen)


def _ended(demotion: Demotion, at: At) -> Demotion:
    """The demotion cut short: it stays as what the next one's length goes by."""
    return replace(demotion, until=min(demotion.until, at.mono))


def _demote(reputation: Reputation, cause: Cause, count: int, at: At, seen: Observation) -> Reputation:
    """Into the fallback tier; while it is there, only another cause that keeps it longer changes anything."""
    current = reputation.demotion
    if current is not None and at.mono < current.until:
        until = at.mono + _LENGTHS[cause]
        if cause == current.cause or until <= current.until:
            return reputation
        return replace(reputation, demotion=Demotion(cause, current.since, until, count, seen))
    calm = current is None or at.mono - current.until >= CALM_S
    # The bound keeps the power small; the length reaches its own long before.
    level = 0 if calm else min(reputation.level + 1, 16)
    until = at.mono + min(_LENGTHS[cause] * 2.0**level, LONGEST_S)
    return replace(reputation, level=level, demotion=Demotion(cause, at, until, count, seen))


def _cause(demotion: Demotion) -> str:
    if demotion.cause == "unreachable":
        return "it could not be reached"
    what = "failures" if demotion.cause == "faults" else "stale details"
    return f"{demotion.count} {what} in a row"


def _told(seen: Observation) -> str:
    if not seen.status:
        answer = "no answer"
    else:
        answer = f"{seen.status} {seen.code}" if seen.code else f"{seen.status} without a code"
        answer += ", marked" if seen.marker else ", unmarked"
    return f"for {seen.target} ({answer}; {RULES.get(seen.rule, seen.rule)})"


def _clock(wall_ms: int) -> str:
    return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%H:%M:%S")

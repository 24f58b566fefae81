"""Who was at fault when a relayed request failed, as tables (wire §2.3, §2.4).

`classify` says whether to try again, `narrow` says who is charged and never whether. Each row has an id, by
which a record of a hop names the rule that decided, and a sentence for people.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from relaydesk.core.relay.catalogue import RELAY_REFUSALS, UPSTREAM_UNREACHABLE

Attribution = Literal["relay", "target", "unknown", "none"]
"""Who failed: ``target`` is a relay's claim and no more; ``none``: nobody, the answer stands as it is."""

# A failure without a code that may pass by itself. 0 stands for no HTTP answer at all.
TRANSIENT: Final = frozenset({0, 408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 525, 526, 527})
# What stands before a node answers in its place. Listed one by one, never derived from another list: a new
# status must be judged before it charges anybody. 408, 504 and 524 are not here: a relay is silent until its
# target answers, so that a gateway's time-out in front of it says nothing. 522 is a time-out of connecting.
FRONT_DOOR: Final = frozenset({425, 429, 500, 502, 503, 520, 521, 522, 523, 525, 526, 527})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one attempt: whether another may help, who failed, and the id of the rule for that."""

    retryable: bool
    attribution: Attribution
    rule: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a caller knows beside the status.

    ``relayed``: it went through a relay; ``hop_marker``: the answer had the marker; ``relay_marks_hops``: the
    relay advertised a version that promises it (`version.marks_hops`); ``caller_aborted``: our own cancel or
    deadline ended it.
    """

    relayed: bool
    hop_marker: bool
    relay_marks_hops: bool
    caller_aborted: bool


@dataclass(frozen=True, slots=True)
class ClassifyRow:
    """A row of the first table: the first whose ``when`` holds for the answer decides."""

    rule: str
    sentence: str
    when: Callable[[_Answer], bool]
    retryable: bool
    attribution: Attribution


@dataclass(frozen=True, slots=True)
class NarrowRow:
    """A row of the other tables. Where ``attribution`` is None, the verdict's own stays; ``keep`` leaves the
    verdict its rule too."""

    rule: str
    sentence: str
    when: Callable[[_Seen], bool]
    attribution: Attribution | None
    keep: bool = False


class _Answer(NamedTuple):
    status: int
    code: str


class _Seen(NamedTuple):
    verdict: Verdict
    status: int
    evidence: Evidence


def front_door(status: int) -> bool:
    """Whether what stands in front of a node may have answered this in its place."""
    return status in FRONT_DOOR


def _unmarked(seen: _Seen) -> bool:
    evidence = seen.evidence
    return evidence.relay_marks_hops and not evidence.hop_marker and front_door(seen.status)


CLASSIFY: Final = (
    ClassifyRow(
        "relay_refused",
        "the relay itself refused the hop, so the target never saw it",
        lambda answer: answer.code in RELAY_REFUSALS,
        True,
        "relay",
    ),
    ClassifyRow(
        "target_unreachable",
        "the relay says that it could not reach the target",
        lambda answer: answer.code == UPSTREAM_UNREACHABLE,
        True,
        "target",
    ),
    ClassifyRow(
        "own_code",
        "the answer has a code of its own, which says what to do",
        lambda answer: bool(answer.code),
        False,
        "none",
    ),
    ClassifyRow(
        "transient",
        "a failure without a code, which may pass",
        lambda answer: answer.status in TRANSIENT,
        True,
        "unknown",
    ),
    ClassifyRow("final", "the answer stands as it is", lambda _: True, False, "none"),
)

NARROW: Final = (
    NarrowRow(
        "attributed",
        "the answer itself says who failed",
        lambda seen: seen.verdict.attribution != "unknown",
        None,
        keep=True,
    ),
    NarrowRow(
        "direct",
        "no relay was asked, so none can be charged",
        lambda seen: not seen.evidence.relayed,
        None,
    ),
    NarrowRow(
        "caller_aborted",
        "we gave up ourselves, which charges nobody",
        lambda seen: seen.evidence.caller_aborted,
        None,
    ),
    NarrowRow(
        "no_answer",
        "the relay gave no HTTP answer at all",
        lambda seen: seen.status == 0,
        "relay",
    ),
    NarrowRow(
        "unmarked_front_door",
        "the hop marker is missing, so something in front of the relay answered in its place",
        _unmarked,
        "relay",
    ),
    NarrowRow(
        "marked",
        "the relay did its part, and its word is that the target failed",
        lambda seen: seen.evidence.hop_marker,
        "target",
    ),
    NarrowRow(
        "unattributed",
        "nothing shows who failed, which charges nobody",
        lambda _: True,
        None,
    ),
)

# Asked before the answer's code is looked at, because a front door often answers with a code of its own.
PROBE: Final = (
    NarrowRow(
        "probe_unmarked_front_door",
        "a probe's answer without the hop marker came from something in front of the relay",
        lambda seen: seen.evidence.relayed and not seen.evidence.caller_aborted and _unmarked(seen),
        "relay",
    ),
)

# Rules that other modules decide by, so that every id in a record has its sentence here.
CLAIM_REFUTED: Final = "claim_refuted"
STALE_EPHEMERAL: Final = "stale_ephemeral"
_OTHERS: Final = {
    CLAIM_REFUTED: "another relay reached the target that this one had called unreachable",
    STALE_EPHEMERAL: "the relay handed out details that the target had replaced long before",
}
RULES: Final[dict[str, str]] = {
    **{row.rule: row.sentence for row in CLASSIFY},
    **{row.rule: row.sentence for row in (*NARROW, *PROBE)},
    **_OTHERS,
}
"""Every rule's id and its sentence."""


def classify(status: int, code: str) -> Verdict:
    """Whether a failed attempt may be repeated, from the answer alone (wire §2.3).

    ``status`` is 0 where there was no HTTP answer, ``code`` empty where the body had none.
    """
    row = next(row for row in CLASSIFY if row.when(_Answer(status, code)))
    return Verdict(row.retryable, row.attribution, row.rule)


def narrow(verdict: Verdict, status: int, evidence: Evidence) -> Verdict:
    """Who is charged for what `classify` left open (wire §2.4). Never changes ``retryable``."""
    return _decide(NARROW, verdict, status, evidence)


def probe_blame(status: int, code: str, evidence: Evidence) -> Verdict:
    """Who failed in a discovery probe, to choose between another relay and "the target is down".

    Only here the marker comes before the code (wire §2.4): a request that costs must not be judged so.
    """
    verdict = classify(status, code)
    decided = _decide(PROBE, verdict, status, evidence)
    return decided if decided is not verdict else narrow(verdict, status, evidence)


def safe_after_payment(code: str) -> bool:
    """Whether the same bytes may go through another relay though escrow is open (wire §2.5).

    Only where the relay's code proves that the target never saw them; who is charged does not matter here.
    """
    return code in RELAY_REFUSALS


def _decide(rows: tuple[NarrowRow, ...], verdict: Verdict, status: int, evidence: Evidence) -> Verdict:
    seen = _Seen(verdict, status, evidence)
    row = next((row for row in rows if row.when(seen)), None)
    if row is None or row.keep:
        return verdict
    return Verdict(verdict.retryable, row.attribution or verdict.attribution, row.rule)

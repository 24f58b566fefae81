"""What callers make of a fault: found by running the client's own rules over what they would be given.

Nothing here decides anything; the sentences only say what `blame` and `reputation` decided.
"""

from __future__ import annotations

from typing import Final

from relaydesk.core.relay.blame import RULES, Evidence, Verdict, classify, narrow
from relaydesk.core.relay.reputation import FAULTS_S, THRESHOLD, UNREACHABLE_S, credit_of
from relaydesk.core.relay.version import PROTO_VERSION, marks_hops

# Faults by what a caller gets in the end: a status, and whether the marker is on it.
_UNMARKED: Final = frozenset(
    {"marker_removed", "answer_replaced", "marker_not_exposed", "http2_broken", "origin_refused"}
)
_GONE: Final = frozenset({"unresolved", "black_hole", "unreachable", "tls_failed", "tls_untrusted"})
_OTHERS: Final = {
    "preflight_refused": "No page of a browser can send a request through this node at all.",
    "stream_buffered": "Answers stand still and then come in one piece: the network's own measure of a relay "
    "is its speed, and callers that stream see none.",
    "stream_cut": "Answers break off in the middle, after the caller has paid for them.",
    "compressed": "A sealed stream is held back while it is compressed, and a caller that asked for the "
    "bytes "
    "as they are cannot read it.",
    "headers_dropped": "A sealed answer without its key or receipt is worth nothing: the caller counts it "
    "as a "
    "violation of the protocol.",
    "headers_changed": "A caller may read another value than was sent.",
    "request_headers_lost": "Nothing can be relayed: the node is never told for whom a request is.",
    "details_hidden": "Callers cannot probe this node: its version stays unknown, and what they know gets "
    "old.",
    "another_node": "Callers meet another node at this address than its record says, and do not use it.",
    "marker_everywhere": "The marker proves nothing any more: what the edge answers itself looks like the "
    "node's word that a target failed, and is refuted, which charges this node.",
    "node_busy": "Callers take another relay meanwhile; refusals of this kind are the relay's own.",
    "tls_ends_soon": "Once it has expired, callers do not connect at all.",
    "seen_from_inside": "What the world sees cannot be told from here, so nobody is blamed.",
    "not_seen_from_inside": "Routers often do not lead an inside machine to their own public address, so "
    "this "
    "says nothing of what the world sees, and nobody is blamed.",
}


def effect(code: str, version: str = PROTO_VERSION, status: int = 0) -> str:
    """What callers conclude about a node that advertises ``version`` and shows the fault ``code``.

    ``status`` is what the edge itself was seen to answer, 0 for nothing.
    """
    if code in _UNMARKED:
        return _marker_effect(code, version)
    if code in _GONE:
        return _charged(0, "", "Callers get no answer at all", version, connected=False)
    if code == "silence_cut":
        return _charged(status or 504, "", "A target that thinks for long is cut off", version)
    if code == "body_limited":
        return _charged(status or 413, "", "Requests with images or long chats do not get through", version)
    if code == "body_failed":
        return _charged(status or 500, "", "Requests with images or long chats do not get through", version)
    if code in ("edge_answers", "redirected", "wrong_route"):
        return _charged(status, "", "Nothing is relayed: the edge answers in the node's place", version)
    if code == "version_old":
        return "Callers do not hold a missing marker against this version, and nothing in its favour either."
    return _OTHERS[code]


def verdict_of(status: int, code: str, *, marker: bool, version: str) -> Verdict:
    """What a caller decides about a relay that advertises ``version``."""
    return narrow(classify(status, code), status, Evidence(True, marker, marks_hops(version), False))


def _marker_effect(code: str, version: str) -> str:
    who = {
        "marker_not_exposed": "Callers in a browser cannot see the marker, which is to them as if it were "
        "gone. ",
        "origin_refused": "Callers in a browser cannot read the answer at all. ",
        "http2_broken": "Callers that speak HTTP/2 get no answer. ",
    }.get(code, "")
    lost = verdict_of(502, "", marker=False, version=version)
    kept = verdict_of(502, "", marker=True, version=version)
    if lost.attribution != "relay":
        return f"{who}Callers charge nobody for a bare 502 behind this node: {RULES[lost.rule]}."
    return (
        f"{who}When a target behind this node fails with a bare 502, callers charge this node for it: "
        f"{RULES[lost.rule]}. {_demotion()} With the marker it is the {kept.attribution}'s."
    )


def _charged(status: int, code: str, what: str, version: str, *, connected: bool = True) -> str:
    verdict = verdict_of(status, code, marker=False, version=version)
    kind = credit_of(verdict, status, code, connected=connected, aborted=False)
    got = f" ({status})" if status else ""
    if kind == "unreachable":
        return f"{what}{got}, and charge this node: {RULES[verdict.rule]}. {_demotion(UNREACHABLE_S, 1)}"
    if kind == "fault":
        return f"{what}{got}, and callers charge this node: {RULES[verdict.rule]}. {_demotion()}"
    if verdict.retryable:
        return (
            f"{what}{got}; callers charge nobody and ask again through another relay: {RULES[verdict.rule]}."
        )
    return f"{what}{got}; callers take it for the last word and do not ask again: {RULES[verdict.rule]}."


def _demotion(seconds: float = FAULTS_S, count: int = THRESHOLD) -> str:
    times = "One such failure" if count == 1 else f"{count} such failures in a row"
    return f"{times}, and they pass it over for {seconds / 60:g} minutes, longer each time."

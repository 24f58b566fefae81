"""What a probe that found nothing wrong has seen, in one sentence."""

from __future__ import annotations

from relaydesk.core.hopcheck.answers import code_of, details_of, marked
from relaydesk.core.hopcheck.model import Exchange, Observation
from relaydesk.core.hopcheck.probes import MIB


def sight(observed: Observation) -> str:
    """One sentence for people."""
    if observed.probe == "name":
        return ", ".join(f"{place.address}{_whose(place.own, place.public)}" for place in observed.places)
    if observed.probe == "tls" and observed.trust is not None:
        trust = observed.trust
        days = "" if trust.valid_s is None else f", valid for {trust.valid_s // 86_400} more days"
        return f"trusted{days}; {'HTTP/2' if trust.alpn == 'h2' else 'HTTP/1.1 alone'} is offered"
    if not observed.exchanges:
        return ""
    if observed.probe == "reach":
        answer = observed.exchanges[0][1]
        return f"it answered {answer.status} in {answer.took_ms} ms"
    if observed.probe == "version":
        details = details_of(observed.exchanges[0][1]) or {}
        return f"{details.get('proto_version', 'no version')}"
    if observed.probe == "body":
        most = max(answer.sent for _, answer in observed.exchanges if answer.status) if _any(observed) else 0
        return f"{most / MIB:.2f} MiB were taken".replace(".00", "")
    if observed.probe == "stream":
        return f"{len(observed.arrivals)} chunks over {max(observed.arrivals, default=0)} ms"
    return "; ".join(told(answer) for _, answer in observed.exchanges)


def told(answer: Exchange) -> str:
    """An answer in a few words: ``400 relay_bad_target, marked``."""
    if not answer.status:
        return answer.problem
    words = " ".join(filter(None, (str(answer.status), code_of(answer))))
    return f"{words}, {'marked' if marked(answer) else 'unmarked'}"


def _whose(own: bool, public: bool) -> str:
    return " (this machine)" if own else "" if public else " (private)"


def _any(observed: Observation) -> bool:
    return any(answer.status for _, answer in observed.exchanges)

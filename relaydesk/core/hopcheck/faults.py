"""What is wrong at one layer, from what was seen there alone. Who did it is decided over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from relaydesk.core.hopcheck import browser
from relaydesk.core.hopcheck.answers import (
    code_of,
    details_of,
    from_relaydesk,
    marked,
    own_words,
    probe_answer,
)
from relaydesk.core.hopcheck.model import Exchange, Fault, Layer, Observation
from relaydesk.core.hopcheck.probes import CHUNKS, MIB, SILENCE
from relaydesk.core.hopcheck.record import held_back
from relaydesk.core.relay.hop import HOP_HEADER
from relaydesk.core.relay.version import marks_hops

Seen = Mapping[str, Observation]

# Nothing of the relay is seen through such a layer, so that nothing else can be said of it.
BLOCKING: Final = frozenset(
    {"unresolved", "black_hole", "unreachable", "tls_failed", "redirected", "edge_answers", "wrong_route"}
)
# A certificate that ends sooner was forgotten: those that renew themselves never come near.
SOON_S: Final = 3 * 86_400
# Headers of the network that an answer to the probe has, beside one that it has twice.
SENT_HEADERS: Final = ("X-Zs-Response-Key", "X-Zs-Receipt", "X-Zs-Settle-Group", "Retry-After")
TWICE: Final = "X-Zs-Probe-Twice"
_KINDS: Final = {
    "resolve": "unresolved",
    "refused": "unreachable",
    "timeout": "black_hole",
    "tls": "tls_failed",
    "broken": "unreachable",
}
_MARKED: Final = ("refusal", "error", "success", "http2", "outside")


def faults_at(layer: Layer, seen: Seen) -> tuple[Fault, ...]:
    """Everything that is wrong at a layer. ``seen`` is by probe."""
    way = tuple(_way(seen))
    found = way if any(fault.code in BLOCKING for fault in way) else (*way, *_through(seen))
    return (*(_trust(seen) if layer.kind == "public" else ()), *found, *_outside(seen))


def blocked(faults: tuple[Fault, ...]) -> Fault | None:
    """The fault for which nothing of the relay is seen, where there is one."""
    return next((fault for fault in faults if fault.code in BLOCKING and fault.probe != "outside"), None)


def reached_node(seen: Seen) -> bool:
    """Whether anything that came back is certainly the node's."""
    answers = [answer for each in seen.values() for _, answer in each.exchanges if answer.status]
    return any(marked(answer) or own_words(answer) or details_of(answer) for answer in answers)


def _way(seen: Seen) -> Iterator[Fault]:
    """Whether the relay's route is reached at all."""
    reach = seen.get("reach")
    answer = reach.exchange("refusal") if reach is not None else None
    if answer is None:
        return
    if not answer.status:
        yield Fault(_KINDS.get(answer.kind, "unreachable"), "reach", "way", answer.problem, answer)
    elif 300 <= answer.status < 400:
        where = answer.value("Location") or "nowhere"
        yield Fault("redirected", "reach", "way", f"{answer.status} to {where}", answer)
    elif marked(answer) and code_of(answer) == "relay_busy":
        yield Fault("node_busy", "reach", "busy", "the node answers relay_busy", answer)
    elif not marked(answer) and not own_words(answer):
        if from_relaydesk(answer):
            said = f"{answer.status} {code_of(answer)}: relaydesk, but not its relay's route"
            yield Fault("wrong_route", "reach", "way", said, answer)
        elif not reached_node(seen):
            yield Fault("edge_answers", "reach", "way", f"{answer.status}, not in the node's words", answer)


def _trust(seen: Seen) -> Iterator[Fault]:
    observed = seen.get("tls")
    trust = observed.trust if observed is not None else None
    if trust is None:
        return
    if trust.why:
        yield Fault("tls_untrusted", "tls", "chain", f"the certificate is not trusted: {trust.why}")
    elif trust.valid_s is not None and trust.valid_s < SOON_S:
        yield Fault("tls_ends_soon", "tls", "end", f"it is valid for {max(0, trust.valid_s) // 3600} h more")


def _through(seen: Seen) -> Iterator[Fault]:
    yield from _marker(seen)
    yield from _browser(seen)
    yield from _version(seen)
    yield from _stream(seen)
    yield from _body(seen)
    yield from _compression(seen)
    yield from _headers(seen)
    yield from _silence(seen)


def _marker(seen: Seen) -> Iterator[Fault]:
    for probe in _MARKED[:4]:
        observed = seen.get(probe)
        for aspect, answer in observed.exchanges if observed is not None else ():
            if probe == "http2" and not answer.status:
                yield Fault("http2_broken", probe, aspect, answer.problem, answer)
            elif answer.status and not marked(answer):
                # The same refusal over another version: only the outermost layer is asked over that.
                yield _unmarked(probe, "refusal" if probe == "http2" else aspect, answer)


def _unmarked(probe: str, aspect: str, answer: Exchange) -> Fault:
    code = code_of(answer)
    if own_words(answer) or details_of(answer) is not None:
        sentence = f"{' '.join(filter(None, (str(answer.status), code)))} without the marker"
        return Fault("marker_removed", probe, aspect, sentence, answer)
    said = f"{answer.status} in words that are not the node's"
    return Fault("answer_replaced", probe, aspect, said, answer)


def _browser(seen: Seen) -> Iterator[Fault]:
    preflight = seen.get("preflight")
    answer = preflight.exchange("preflight") if preflight is not None else None
    if answer is not None and answer.status:
        yield from browser.preflight_faults(answer)
    exposed = seen.get("exposed")
    for aspect, each in exposed.exchanges if exposed is not None else ():
        # What stands in the node's place has no CORS either, and that is told already.
        if each.status and (own_words(each) or marked(each)):
            yield from browser.answer_faults(aspect, each)


def _version(seen: Seen) -> Iterator[Fault]:
    observed = seen.get("version")
    answer = observed.exchange("details") if observed is not None else None
    if answer is None:
        return
    details = details_of(answer)
    if details is None:
        said = f"{answer.status}, not its details" if answer.status else answer.problem
        yield Fault("details_hidden", "version", "details", said, answer)
        return
    version = str(details["proto_version"])[:32]
    if not marks_hops(version):
        yield Fault("version_old", "version", "version", f"it advertises {version}", answer)
    if marked(answer):
        yield Fault(
            "marker_everywhere", "version", "details", f"{HOP_HEADER} is on an answer of no relay", answer
        )


def _stream(seen: Seen) -> Iterator[Fault]:
    observed = seen.get("stream")
    answer = observed.exchange("stream") if observed is not None else None
    if observed is None or answer is None or not answer.status or probe_answer(answer) is None:
        return
    if answer.problem or len(observed.arrivals) < CHUNKS:
        said = f"{len(observed.arrivals)} of {CHUNKS} chunks came"
        yield Fault("stream_cut", "stream", "stream", f"{said}: {answer.problem}".rstrip(": "), answer)
        return
    if held_back(observed.arrivals, observed.gap_ms):
        came = ", ".join(map(str, observed.arrivals))
        said = f"{CHUNKS} chunks sent {observed.gap_ms} ms apart came {came} ms after the answer's head"
        yield Fault("stream_buffered", "stream", "stream", said, answer)


def _body(seen: Seen) -> Iterator[Fault]:
    observed = seen.get("body")
    for aspect, answer in observed.exchanges if observed is not None else ():
        if marked(answer) or own_words(answer):
            continue
        if not answer.status and answer.kind == "timeout":
            continue  # a slow line says nothing of a limit
        size = f"{answer.sent / MIB:.2f} MiB".replace(".00", "")
        what = str(answer.status) if answer.status else answer.problem
        # A limit is told by a status below 500, or by hanging up; else the edge itself failed.
        code = "body_failed" if answer.status >= 500 else "body_limited"
        yield Fault(code, "body", aspect, f"a body of {size} gets {what}", answer)
        return


def _compression(seen: Seen) -> Iterator[Fault]:
    for observed in seen.values():
        for aspect, answer in observed.exchanges:
            encoding = answer.value("Content-Encoding").lower()
            if encoding not in ("", "identity") and (own_words(answer) or marked(answer)):
                asked = "asked for or not" if observed.probe != "compression" else "where a caller takes it"
                said = f"the answer is compressed ({encoding[:16]}), {asked}"
                yield Fault("compressed", "compression", "encoding", said, answer)
                return
            _ = aspect


def _headers(seen: Seen) -> Iterator[Fault]:
    observed = seen.get("headers")
    answer = observed.exchange("headers") if observed is not None else None
    if answer is not None and answer.status == 200 and probe_answer(answer) is not None:
        for name in SENT_HEADERS:
            if not answer.values(name):
                yield Fault("headers_dropped", "headers", name, f"{name} is missing", answer)
        twice = ",".join(answer.values(TWICE))
        if not answer.values(TWICE):
            yield Fault("headers_dropped", "headers", "X-Zs-*", "an X-Zs- header is missing", answer)
        elif "one" not in twice or "two" not in twice:
            yield Fault(
                "headers_changed", "headers", "twice", "of a header that was sent twice one is gone", answer
            )
    error = seen.get("error")
    answer = error.exchange("error") if error is not None else None
    if answer is not None and code_of(answer).startswith("relay_bad_"):
        said = f"the relay's headers arrive changed: {answer.status} {code_of(answer)}"
        yield Fault("request_headers_lost", "error", "request", said, answer)


def _silence(seen: Seen) -> Iterator[Fault]:
    for probe, observed in seen.items():
        answer = observed.exchange("silence") if probe.startswith(SILENCE) else None
        if answer is None or probe_answer(answer) is not None:
            continue
        what = f"{answer.status} in other words" if answer.status else answer.problem
        said = f"after {answer.took_ms / 1000:.1f} s of silence: {what}"
        yield Fault("silence_cut", probe, probe, said, answer)


def _outside(seen: Seen) -> Iterator[Fault]:
    observed = seen.get("outside")
    answer = observed.exchange("outside") if observed is not None else None
    if answer is None:
        return
    if not answer.status:
        yield Fault(_KINDS.get(answer.kind, "unreachable"), "outside", "way", answer.problem, answer)
    elif 300 <= answer.status < 400:
        yield Fault("redirected", "outside", "way", f"{answer.status} to somewhere else", answer)
    elif not marked(answer):
        # A peer tells no body. 400 is the node's own answer; another is somebody else's.
        if answer.status == 400:
            said = "400 without the marker, seen by a peer"
            yield Fault("marker_removed", "outside", "refusal", said, answer)
        else:
            said = f"{answer.status} without the marker, seen by a peer"
            yield Fault("edge_answers", "outside", "way", said, answer)

from __future__ import annotations

from dataclasses import replace

import pytest

from relaydesk.core.hopcheck.faults import blocked, faults_at, reached_node
from relaydesk.core.hopcheck.model import Exchange, Observation, Trust
from tests.support.edge_scenes import FAULTS, PUBLIC, Seen, answer, clean, error, mapped, without

PAGE = b"<html><h1>Forbidden</h1></html>"


def codes(seen: Seen) -> list[str]:
    return [fault.code for fault in faults_at(PUBLIC, seen)]


def reached(found: Exchange) -> Seen:
    return {"reach": Observation("reach", "public", (("refusal", found),))}


def test_nothing_is_wrong_where_all_is_well() -> None:
    assert codes(clean(PUBLIC)) == []
    assert reached_node(clean(PUBLIC))


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_under_its_codes(name: str) -> None:
    change, expected = FAULTS[name]
    assert set(codes(change(clean(PUBLIC)))) == expected


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("resolve", "unresolved"),
        ("refused", "unreachable"),
        ("timeout", "black_hole"),
        ("tls", "tls_failed"),
        ("broken", "unreachable"),
    ],
)
def test_no_answer_by_its_kind(kind: str, code: str) -> None:
    seen = reached(Exchange("POST", "x", kind=kind, problem="why"))  # type: ignore[arg-type]
    (fault,) = faults_at(PUBLIC, seen)
    assert (fault.code, fault.sentence) == (code, "why")
    assert blocked((fault,)) == fault


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (answer(301, b"", (("Location", "https://elsewhere.example"),)), "redirected"),
        (answer(404, error("not_found"), ()), "wrong_route"),
        (answer(403, PAGE, ()), "edge_answers"),
        (answer(400, PAGE, ()), "edge_answers"),
        (answer(503, error("relay_busy")), "node_busy"),
        (answer(429, error("rate_limited"), ()), "edge_answers"),
    ],
)
def test_what_answers_in_the_place_of_the_relays_route(found: Exchange, code: str) -> None:
    assert [fault.code for fault in faults_at(PUBLIC, reached(found))] == [code]


def test_a_page_where_the_node_is_reached_otherwise_is_a_replaced_answer() -> None:
    seen = mapped(clean(PUBLIC), lambda each: replace(each, headers=(), body=PAGE), "reach", "refusal")
    assert codes(seen) == ["answer_replaced"]


def test_the_certificate_counts_at_the_public_layer_alone() -> None:
    seen = clean(PUBLIC)
    seen["tls"] = replace(seen["tls"], trust=Trust("self-signed certificate"))
    assert codes(seen) == ["tls_untrusted"]
    assert faults_at(replace(PUBLIC, kind="via"), seen) == ()
    seen["tls"] = replace(seen["tls"], trust=Trust("", 3600))
    assert codes(seen) == ["tls_ends_soon"]


def test_versions_and_details() -> None:
    old = mapped(
        clean(PUBLIC), lambda each: replace(each, body=each.body.replace(b"9.10", b"9.0")), "version"
    )
    assert codes(old) == ["version_old"]
    assert codes(mapped(clean(PUBLIC), lambda each: replace(each, status=404, body=b""), "version")) == [
        "details_hidden"
    ]
    marked = mapped(clean(PUBLIC), lambda each: replace(each, headers=(("X-Zs-Relay-Hop", "1"),)), "version")
    assert codes(marked) == ["marker_everywhere"]


def test_streams_that_break_off_and_streams_that_are_slow() -> None:
    seen = clean(PUBLIC)
    seen["stream"] = replace(seen["stream"], arrivals=(0, 200, 400))
    assert codes(seen) == ["stream_cut"]
    # Late as a whole, and with a jolt: a busy machine is no buffer.
    seen["stream"] = replace(seen["stream"], arrivals=(900, 900, 1300, 1500, 1700, 1900))
    assert codes(seen) == []
    seen["stream"] = replace(seen["stream"], arrivals=(0, 800, 800, 800, 800, 1000))
    assert codes(seen) == []
    # Held to the end; so too by what sends the beginning with the head.
    for arrivals in ((600, 600, 600, 1000, 1000, 1000), (1000,) * 6, (0,) * 6, (0, *(1000,) * 5)):
        seen["stream"] = replace(seen["stream"], arrivals=arrivals)
        assert codes(seen) == ["stream_buffered"], arrivals


def test_a_body_that_is_slow_says_nothing() -> None:
    seen = clean(PUBLIC)
    slow = Exchange("POST", "x", sent=12_582_912, kind="timeout", problem="not over within 3 s")
    seen["body"] = replace(seen["body"], exchanges=(*seen["body"].exchanges, ("12582912", slow)))
    assert codes(seen) == []
    cut = replace(slow, kind="broken", problem="the connection broke off")
    seen["body"] = replace(seen["body"], exchanges=(("12582912", cut),))
    assert codes(seen) == ["body_limited"]


@pytest.mark.parametrize(
    ("status", "code"),
    [(413, "body_limited"), (403, "body_limited"), (500, "body_failed"), (502, "body_failed")],
)
def test_a_limit_is_not_the_edges_own_failure(status: int, code: str) -> None:
    seen = clean(PUBLIC)
    page = Exchange("POST", "x", status=status, sent=12_582_912, body=PAGE)
    seen["body"] = replace(seen["body"], exchanges=(("12582912", page),))
    assert codes(seen) == [code]


def test_headers_that_are_joined_are_there_and_one_that_is_gone_is_not() -> None:
    def joined(found: Exchange) -> Exchange:
        kept = without(found, "X-Zs-Probe-Twice")
        return replace(kept, headers=(*kept.headers, ("x-zs-probe-twice", "one, two")))

    assert codes(mapped(clean(PUBLIC), joined, "headers")) == []

    def halved(found: Exchange) -> Exchange:
        return replace(found, headers=tuple(each for each in found.headers if each[1] != "one"))

    assert codes(mapped(clean(PUBLIC), halved, "headers")) == ["headers_changed"]


def test_a_request_whose_headers_are_lost() -> None:
    lost = mapped(
        clean(PUBLIC),
        lambda each: answer(400, error("relay_bad_target")) if each.status == 404 else each,
        "error",
    )
    assert codes(lost) == ["request_headers_lost"]


def test_http2_that_does_not_answer() -> None:
    seen = clean(PUBLIC)
    gone = Exchange("POST", "x", kind="broken", problem="the edge ended the exchange", protocol="HTTP/2")
    seen["http2"] = replace(seen["http2"], exchanges=(("http2", gone),))
    assert codes(seen) == ["http2_broken"]


def test_what_a_peer_sees() -> None:
    seen = clean(PUBLIC)
    for found, expected in (
        (Exchange("POST", "x", status=400, headers=(("x-zs-relay-hop", "1"),)), []),
        (Exchange("POST", "x", status=400), ["marker_removed"]),
        (Exchange("POST", "x", status=502), ["edge_answers"]),
        (Exchange("POST", "x", status=302), ["redirected"]),
        (Exchange("POST", "x", kind="tls", problem="p"), ["tls_failed"]),
    ):
        seen["outside"] = Observation("outside", "public", (("outside", found),))
        assert codes(seen) == expected
        assert blocked(faults_at(PUBLIC, seen)) is None

from __future__ import annotations

from dataclasses import replace

from relaydesk.core.hopcheck.model import Exchange, Observation
from relaydesk.core.hopcheck.sight import sight, told
from tests.support.edge_scenes import PUBLIC, clean


def test_what_was_seen_in_a_sentence() -> None:
    seen = clean(PUBLIC)
    assert {name: sight(each) for name, each in seen.items()} == {
        "reach": "it answered 400 in 12 ms",
        "version": "9.10",
        "refusal": "400 relay_bad_target, marked",
        "error": "404 relay_unknown_target, marked; 502 relay_upstream_unreachable, marked",
        "success": "200, marked",
        "preflight": "204, marked",
        "exposed": "400 relay_bad_target, marked; 502 relay_upstream_unreachable, marked; 200, marked",
        "stream": "6 chunks over 1000 ms",
        "body": "12 MiB were taken",
        "compression": "200, marked",
        "headers": "200, marked",
        "silence-20": "200, marked",
        "name": "203.0.113.7",
        "tls": "trusted, valid for 57 more days; HTTP/2 is offered",
        "http2": "400 relay_bad_target, marked",
    }


def test_addresses_of_the_inside_are_called_so() -> None:
    place = clean(PUBLIC)["name"].places[0]
    seen = Observation(
        "name",
        "public",
        places=(replace(place, own=True, public=False), replace(place, address="10.0.0.1", public=False)),
    )
    assert sight(seen) == "203.0.113.7 (this machine), 10.0.0.1 (private)"


def test_no_answer_is_told_by_its_reason() -> None:
    assert told(Exchange("POST", "x", problem="it is gone")) == "it is gone"

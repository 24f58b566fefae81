from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.relay.catalogue import WireError
from relaydesk.core.relay.hop import (
    HopRequest,
    allowed_path,
    copied_headers,
    forwarded_headers,
    has_marker,
    parse_relay_headers,
    relay_headers,
    relay_url,
    target_url,
)
from relaydesk.core.relay.ref import NodeRef

GOOD = {
    "X-Zs-Relay-Target": "7",
    "X-Zs-Relay-Target-Node": "2",
    "X-Zs-Relay-Path": "/v1/zs/reserve",
    "X-Zs-Relay-Method": "POST",
}
PLACES = ["/v1/chat/completions", "/v1/responses", "/v1/images/generations", "/v1/images/edits", "/v1/models",
          "/v1/zs/reserve", "/v1/zs/details", "/v1/zs/attestation"]  # fmt: skip


def refusal(headers: list[tuple[str, str]]) -> str:
    with pytest.raises(WireError) as caught:
        parse_relay_headers(headers)
    assert caught.value.status == 400
    return caught.value.code


def test_a_hop_is_read_whatever_case_and_company_its_headers_have() -> None:
    wanted = HopRequest(NodeRef(7, 2), "/v1/zs/reserve", "POST")
    assert parse_relay_headers(GOOD.items()) == wanted
    shouted = [(name.upper(), value) for name, value in GOOD.items()]
    assert parse_relay_headers([("Host", "x"), *shouted, ("X-Zs-Relay-Other", "1")]) == wanted


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.sampled_from(PLACES),
    st.sampled_from(["GET", "POST"]),
)
def test_what_a_caller_writes_a_relay_reads(operator: int, node: int, path: str, method: str) -> None:
    request = HopRequest(NodeRef(operator, node), path + "?a=..", method)
    assert parse_relay_headers(relay_headers(request)) == request


BAD_IDS = ["", "-1", "+9", " 9", "9 ", "1_0", "٩", "９", "0x9", "9.0", "9e3", "1,2", str(2**64), "9" * 21,
           "9\n", "²", "seven"]  # fmt: skip


@pytest.mark.parametrize("value", BAD_IDS)
@pytest.mark.parametrize("name", ["X-Zs-Relay-Target", "X-Zs-Relay-Target-Node"])
def test_bad_ids(name: str, value: str) -> None:
    assert refusal([*({**GOOD, name: value}).items()]) == "relay_bad_target"


@pytest.mark.parametrize("value", ["", "get", "PUT", "HEAD", "POST ", "GET,POST", "OPTIONS", "CONNECT"])
def test_bad_methods(value: str) -> None:
    assert refusal([*({**GOOD, "X-Zs-Relay-Method": value}).items()]) == "relay_bad_method"


@pytest.mark.parametrize(
    ("name", "code"),
    [("X-Zs-Relay-Target", "relay_bad_target"), ("X-Zs-Relay-Target-Node", "relay_bad_target"),
     ("X-Zs-Relay-Path", "relay_bad_path"), ("X-Zs-Relay-Method", "relay_bad_method")],
)  # fmt: skip
def test_missing_and_doubled_headers(name: str, code: str) -> None:
    assert refusal([(key, value) for key, value in GOOD.items() if key != name]) == code
    assert refusal([*GOOD.items(), (name.lower(), GOOD[name])]) == code


def test_the_target_is_looked_at_before_path_and_method() -> None:
    assert refusal([]) == "relay_bad_target"
    assert refusal([*list(GOOD.items())[:2], ("X-Zs-Relay-Method", "nope")]) == "relay_bad_path"


@pytest.mark.parametrize(
    "place",
    [*PLACES, "/v1/models/m", "/v1/models/org%2Fm", "/v1/models/m.1:8b", "/v1/models/a.b"],
)
def test_paths_that_are_relayed(place: str) -> None:
    assert allowed_path(place)
    assert allowed_path(place + "?a=1&b=../..")
    assert allowed_path(place + "?")
    assert allowed_path(place + "?a?b")


@pytest.mark.parametrize(
    "path",
    ["", "/", "/v1/", "/v1", "v1/models", "/v1/models/", "/v1/models/?x", "/v1/models/a/b", "/v1/models//",
     "/v1/models/a/", "/v1/models/..", "/v1/models/a..b", "/v1/models/../zs/relay", "/v1/models/.",
     "/v1/models/%2e%2E", "/v1/models/%2e", "/v1/models/.%2e", "/v1/zs/relay", "/v1/zs/relay?x",
     "/v1/zs/relay/", "/v1/zs/reserve/", "/V1/models", "/v1/Models", "//v1/models", "/v1//models",
     "/v1/embeddings", "/healthz", "/metrics", "/v1/zs/directory", "/v1/zs/ledger", "http://a/v1/models",
     "https://a/v1/models", "//a/v1/models", "/v1/models#x", "/v1/models?a#b", "/v1/models/a\\b",
     "/v1/models/a b", "/v1/models ", "/v1/models\r\nX: y", "/v1/models?a\x00", "/v1/models?é",
     "/v1/models/é", "/v1/models?" + "a" * 2048,
     "*", "?", "/v1/chat/completions/..", "/v1/../v1/models", "/v1/%6dodels"],
)  # fmt: skip
def test_paths_that_are_not(path: str) -> None:
    assert not allowed_path(path)
    assert refusal([*({**GOOD, "X-Zs-Relay-Path": path}).items()]) == "relay_bad_path"


def test_a_path_of_ours_passes_only_where_it_is_named() -> None:
    ours = frozenset({"/v1/zs/ledger"})
    headers = {**GOOD, "X-Zs-Relay-Path": "/v1/zs/ledger"}
    assert allowed_path("/v1/zs/ledger?x", ours) and not allowed_path("/v1/zs/ledger/x", ours)
    assert parse_relay_headers(headers.items(), ours).path == "/v1/zs/ledger"


@given(st.text(st.characters(codec="ascii"), max_size=60) | st.text(max_size=20))
def test_any_path_has_an_answer(tail: str) -> None:
    for path in (tail, "/v1/models/" + tail, "/v1/models?" + tail):
        if allowed_path(path):
            place = path.partition("?")[0]
            assert ".." not in place and place.count("/") <= 3 and path.isascii() and path.isprintable()


def test_ten_thousand_mutated_requests_are_read_or_refused() -> None:
    rng = random.Random(3)
    alphabet = [*"0123456789/.?%#\\ \t\r\n\x00-_aZé٩", "..", "%2e", "/v1/", "GET"]
    read, codes = 0, set()
    for _ in range(10_000):
        headers = [[name, value] for name, value in GOOD.items()]
        for _ in range(rng.randint(1, 3)):
            part = rng.choice(headers)
            side = 1 if rng.random() < 0.8 else 0
            place = rng.randint(0, len(part[side]))
            part[side] = part[side][:place] + rng.choice(alphabet) + part[side][place + rng.randint(0, 1) :]
        try:
            request = parse_relay_headers([(name, value) for name, value in headers])
        except WireError as error:
            codes.add(error.code)
        else:
            read += 1
            assert allowed_path(request.path) and min(request.ref) >= 0 and max(request.ref) < 2**64
    assert 0 < read < 10_000
    assert codes == {"relay_bad_target", "relay_bad_path", "relay_bad_method"}


def test_only_two_request_headers_go_on() -> None:
    sent = [
        ("content-type", "application/vnd.zs+json"), ("ACCEPT", "text/event-stream"), ("Cookie", "a=b"),
        ("Authorization", "Bearer x"), ("User-Agent", "me"), ("X-Forwarded-For", "1.2.3.4"), ("Via", "1.1 x"),
        ("Forwarded", "for=1.2.3.4"), ("Origin", "https://a"), ("Referer", "https://a/b"), ("Sec-CH-UA", "x"),
        ("X-Zs-Relay-Target", "7"), ("X-Zs-Anything", "1"), ("Accept-Language", "de"),
        ("traceparent", "00-1"),
        ("Content-Type", "text/plain"), ("X-Real-IP", "1.2.3.4"), ("Content-Length", "4"),
    ]  # fmt: skip
    assert forwarded_headers(sent) == [
        ("Content-Type", "application/vnd.zs+json"), ("Accept", "text/event-stream"),
    ]  # fmt: skip
    assert forwarded_headers([("Accept", "a" * 257), ("Content-Type", "a\r\nX: y")]) == []


def test_a_target_cannot_speak_as_the_relay() -> None:
    answered = [
        ("Content-Type", "text/event-stream"), ("x-zs-relay-hop", "1"), ("X-ZS-RELAY-HOP", "0"),
        ("X-Zs-Response-Key", "k"), ("X-Zs-Receipt", "r"), ("x-zs-settle-group", "g"), ("X-Zs-New", ""),
        ("Retry-After", "2"), ("Retry-After", "9"), ("Content-Type", "text/html"), ("Connection", "close"),
        ("Transfer-Encoding", "chunked"), ("Content-Length", "9"), ("Content-Encoding", "gzip"),
        ("Access-Control-Allow-Origin", "https://a"), ("Access-Control-Expose-Headers", "none"),
        ("Set-Cookie", "a=b"), ("Location", "https://a"), ("Server", "x"), ("Upgrade", "h2c"),
        ("X-Zs-Relay-Hop ", "1"), ("X-Zs-Bad", "a\r\nb"), ("X_Zs_Relay_Hop", "1"),
    ]  # fmt: skip
    copied = copied_headers(answered)
    assert copied == [
        ("Content-Type", "text/event-stream"), ("X-Zs-Response-Key", "k"), ("X-Zs-Receipt", "r"),
        ("x-zs-settle-group", "g"), ("X-Zs-New", ""), ("Retry-After", "2"),
    ]  # fmt: skip
    assert has_marker(answered) and not has_marker(copied)


@given(
    st.lists(
        st.tuples(st.text(max_size=20) | st.sampled_from(["X-Zs-Relay-Hop", "x-zs-a"]), st.text(max_size=20))
    )
)
def test_nothing_unlisted_crosses_back(headers: list[tuple[str, str]]) -> None:
    for name, value in copied_headers(headers):
        assert name.lower() in ("content-type", "retry-after") or name.lower().startswith("x-zs-")
        assert "\n" not in value and "\r" not in value and "\x00" not in value
    assert not has_marker(copied_headers(headers))


def test_urls_of_a_hop() -> None:
    assert relay_url("https://a.example/p/") == "https://a.example/p/v1/zs/relay"
    assert target_url("https://a.example/", "/v1/models?x=..") == "https://a.example/v1/models?x=.."

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.hopcheck.evidence import CUT, MOST_LINE, MOST_LINES, header, lines
from relaydesk.core.hopcheck.model import Exchange

SEEN = Exchange(
    "POST",
    "https://node.example.org/v1/zs/relay",
    (("X-Zs-Relay-Probe", "00112233445566778899aabbccddeeff; stream"), ("Accept", "application/json")),
    status=200,
    headers=(("Set-Cookie", "sid=s3cr3t"), ("Server", "nginx"), ("X-Zs-Relay-Hop", "1")),
    body=b"hello\x1b[31m there",
)


def test_the_exchange_as_it_was_with_secrets_cut() -> None:
    assert lines(SEEN) == (
        "POST https://node.example.org/v1/zs/relay HTTP/1.1",
        f"X-Zs-Relay-Probe: {CUT}",
        "Accept: application/json",
        "HTTP/1.1 200",
        f"Set-Cookie: {CUT}",
        "Server: nginx",
        "X-Zs-Relay-Hop: 1",
        "hello[31m there",
    )


def test_what_may_be_a_secret_is_cut_by_its_name() -> None:
    for name in (
        "Authorization",
        "cookie",
        "WWW-Authenticate",
        "X-Amz-Security-Token",
        "X-Api-Key",
        "CSRF-x",
    ):
        assert header(name, "value") == f"{name}: {CUT}"
    assert header("Access-Control-Allow-Origin", "*") == "Access-Control-Allow-Origin: *"


def test_no_answer_says_why() -> None:
    gone = Exchange("POST", "http://x", sent=5, kind="timeout", problem="not over within 7 s")
    assert lines(gone)[1:] == ("(5 bytes)", "no answer: not over within 7 s")


def test_a_compressed_body_is_not_quoted() -> None:
    packed = replace(SEEN, headers=(("Content-Encoding", "br"),))
    assert lines(packed)[-1] == "Content-Encoding: br"


@given(
    st.lists(st.tuples(st.text(max_size=20), st.text(max_size=3000)), max_size=80), st.binary(max_size=5000)
)
def test_evidence_is_bounded_and_safe(headers: list[tuple[str, str]], body: bytes) -> None:
    told = lines(replace(SEEN, headers=tuple(headers), body=body))
    assert len(told) <= MOST_LINES
    assert all(len(line) <= MOST_LINE and "\n" not in line and "\x1b" not in line for line in told)
    assert "00112233" not in "".join(told)

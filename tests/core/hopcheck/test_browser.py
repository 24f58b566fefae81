from __future__ import annotations

import pytest

from relaydesk.core.hopcheck.browser import ORIGIN, REQUESTED, answer_faults, preflight_faults
from relaydesk.core.hopcheck.model import Exchange, Headers

ALLOWED = ", ".join(REQUESTED)
GOOD = (
    ("access-control-allow-origin", "*"),
    ("Access-Control-Allow-Methods", "GET, POST"),
    ("Access-Control-Allow-Headers", ALLOWED),
)


def preflight(headers: Headers, status: int = 204) -> list[tuple[str, str]]:
    found = preflight_faults(Exchange("OPTIONS", "x", status=status, headers=headers))
    return [(fault.code, fault.aspect) for fault in found]


def read(headers: Headers) -> list[str]:
    return [
        fault.code for fault in answer_faults("refusal", Exchange("POST", "x", status=400, headers=headers))
    ]


def test_a_preflight_that_lets_pages_in() -> None:
    assert preflight(GOOD) == []
    assert (
        preflight((GOOD[0], ("Access-Control-Allow-Methods", "*"), ("Access-Control-Allow-Headers", "*")))
        == []
    )
    assert preflight((("Access-Control-Allow-Origin", ORIGIN), *GOOD[1:]), 200) == []


def test_what_keeps_a_page_out() -> None:
    assert preflight(GOOD, 405) == [("preflight_refused", "status")]
    assert preflight(GOOD[1:]) == [("origin_refused", "preflight")]
    assert preflight((GOOD[0], GOOD[2])) == [("preflight_refused", "method")]
    assert preflight((*GOOD[:2], ("Access-Control-Allow-Headers", "content-type"))) == [
        ("preflight_refused", "headers")
    ]


@pytest.mark.parametrize("value", ["null", "https://other.example", "*, *", f"*, {ORIGIN}", "", "**"])
def test_an_origin_that_browsers_refuse(value: str) -> None:
    assert read((("Access-Control-Allow-Origin", value), ("Access-Control-Expose-Headers", "*"))) == [
        "origin_refused"
    ]


def test_two_origins_are_none() -> None:
    assert read((GOOD[0], GOOD[0], ("Access-Control-Expose-Headers", "*"))) == ["origin_refused"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["X-Zs-Relay-Hop"], []),
        (["x-foo, x-zs-relay-hop ,x-bar"], []),
        (["x-foo", "X-ZS-RELAY-HOP"], []),
        (["*"], []),
        (["X-Zs-Relay-Hops"], ["marker_not_exposed"]),
        (["x-foo"], ["marker_not_exposed"]),
        ([], ["marker_not_exposed"]),
    ],
)
def test_what_a_page_may_read(values: list[str], expected: list[str]) -> None:
    exposed = tuple(("Access-Control-Expose-Headers", value) for value in values)
    assert read((GOOD[0], *exposed)) == expected

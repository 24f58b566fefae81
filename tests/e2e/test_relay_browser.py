"""A page of another origin reads the hop marker from a running node, as browsers that call do (wire §1.4)."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import CHROMIUM, Browser
from tests.support.front import NGINX, Front
from tests.support.operators import Operator, Operators, Plan
from tests.support.pebble import free_ports

pytestmark = pytest.mark.skipif(CHROMIUM is None or NGINX is None, reason="needs chromium and nginx")

MARKER, RETRY = "X-Zs-Relay-Hop", "Retry-After"
SEEN = [MARKER, RETRY, "Server"]


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Front, Operator, Operator]]:
    """nginx before the first of two nodes; each lists the other."""
    front = Front()
    bind = f"127.0.0.1:{free_ports(1)[0]}"
    url = front.behind(bind)
    with front, Operators(Plan(bind=bind, url=url), 1) as operators:
        yield front, operators[0], operators[1]


@pytest.fixture
def browser() -> Iterator[Browser]:
    with Browser() as running:
        yield running


def relayed(base: str, target: str, path: str = "/v1/zs/details", method: str = "GET") -> Any:
    """What the page asks through a relay: with headers that no page may send before the relay was asked."""
    operator, node = target.split(":")
    headers = {
        "X-Zs-Relay-Target": operator,
        "X-Zs-Relay-Target-Node": node,
        "X-Zs-Relay-Path": path,
        "X-Zs-Relay-Method": method,
        "Content-Type": "application/vnd.zs-reserve+json",
    }
    body = '{"ciphertext":"AA=="}' if method == "POST" else None
    return (f"{base}/v1/zs/relay", {"method": "POST", "headers": headers, "body": body}, SEEN)


def test_a_page_reads_the_marker_on_every_answer_of_a_relay(
    running: tuple[Front, Operator, Operator], browser: Browser
) -> None:
    front, relay, target = running
    base = relay.public_url
    front.right(base)
    before = len(front.requests(base))
    plain = (f"{base}/v1/zs/relay", {"method": "POST"}, SEEN)
    found = browser.fetch(
        relayed(base, target.ref),
        relayed(base, target.ref, "/v1/zs/reserve", "POST"),
        relayed(base, "1:0"),
        relayed(base, target.ref, "/healthz"),
        plain,
        (f"{base}/v1/zs/relay", {}, SEEN),
        (f"{base}/v1/zs/details", {}, SEEN),
    )
    good, refused, unknown, path, bare, method, details = found
    assert good["status"] == 200
    assert str(target.identity.operator_id) in good["body"]
    assert refused["status"] >= 400
    assert '"code":"' in refused["body"].replace(" ", "")
    assert '"code":"relay_' not in refused["body"].replace(" ", "")
    assert [each["status"] for each in (unknown, path, bare, method)] == [404, 400, 400, 405]
    for answer in (good, refused, unknown, path, bare, method):
        # The name of the server is not exposed: what a page sees is what the node says that it may.
        assert answer["headers"][MARKER] == "1"
        assert answer["headers"]["Server"] is None
    assert details["status"] == 200
    assert details["headers"][MARKER] is None
    # The browser asked before it sent what a page may not send by itself.
    assert "OPTIONS /v1/zs/relay 204" in front.requests(base)[before:]


def test_a_page_cannot_read_the_marker_behind_a_front_that_rewrites_the_exposed_list(
    running: tuple[Front, Operator, Operator], browser: Browser
) -> None:
    """It cannot tell that from a marker that was not sent; everything else comes as before."""
    front, relay, target = running
    front.wrong(relay.public_url, "exposes-less")
    behind, past, refused = browser.fetch(
        relayed(relay.public_url, target.ref),
        relayed(f"http://{relay.bind}", target.ref),
        (f"{relay.public_url}/v1/zs/relay", {"method": "POST"}, SEEN),
    )
    assert behind["status"] == past["status"] == 200
    assert behind["body"] == past["body"] != ""
    assert refused["status"] == 400
    assert [each["headers"][MARKER] for each in (behind, past, refused)] == [None, "1", None]
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{relay.public_url}/v1/zs/relay", data=b"", timeout=20)
    assert caught.value.headers[MARKER] == "1"
    caught.value.close()

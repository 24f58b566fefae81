from __future__ import annotations

import re

import pytest

from relaydesk.core.hopcheck.decide import RANKED
from relaydesk.core.hopcheck.product import PRODUCTS
from relaydesk.core.hopcheck.remedies.general import RULES
from relaydesk.core.hopcheck.remedies.remedy import EXPOSED, OUTSIDE, Remedy
from relaydesk.core.hopcheck.remedies.table import TABLE, remedy_of
from relaydesk.surfaces.network import cors
from tests.support.tree import SOURCE

BLOCK = re.compile(r"```(?P<language>[a-z]+) (?P<what>remove|add)\n(?P<text>.*?)\n```", re.DOTALL)


def test_every_finding_has_a_rule_and_every_rule_a_finding() -> None:
    assert set(RULES) == set(RANKED)
    assert set(TABLE) == set(PRODUCTS)
    for product, remedies in TABLE.items():
        assert set(remedies) <= set(RANKED), product
        assert "marker_removed" in remedies, product
        assert "marker_not_exposed" in remedies or product in ("Envoy",), product


@pytest.mark.parametrize("product", [*PRODUCTS, "relaydesk", ""])
@pytest.mark.parametrize("code", RANKED)
def test_every_remedy_can_be_read_by_a_program(product: str, code: str) -> None:
    text = remedy_of(code, product)
    assert text.startswith(RULES[code])
    assert text.count("```") == 2 * len(BLOCK.findall(text))
    for found in BLOCK.finditer(text):
        assert found["text"].strip()
        before = text[: found.start()].rstrip().rsplit("\n", 1)[-1]
        if found["what"] == "add":
            assert before.startswith(f"{product}: add in ")
            assert before.endswith(("(tested):", f"({OUTSIDE}):"))


def test_what_was_not_tested_says_so() -> None:
    assert OUTSIDE in remedy_of("marker_removed", "Traefik")
    assert OUTSIDE in remedy_of("marker_removed", "")
    assert OUTSIDE in remedy_of("marker_removed", "Cloudflare")
    assert "(nginx: tested)" in remedy_of("marker_removed", "nginx")
    assert "(tested)" in remedy_of("silence_cut", "HAProxy")
    assert OUTSIDE in remedy_of("wrong_route", "nginx")
    assert (
        Remedy("t", "x", "w", "", "a").rendered("P") == f"t\n\nP: add in w ({OUTSIDE}):\n\n```x add\na\n```"
    )


@pytest.mark.parametrize("product", [*PRODUCTS, ""])
def test_a_failure_of_the_edges_own_leads_to_its_log_and_to_no_limit(product: str) -> None:
    text = remedy_of("body_failed", product)
    assert "see the proxy's error log" in text
    # Caddy alone answers 502 at a limit of its own.
    assert bool(BLOCK.search(text)) == (product == "Caddy")
    assert text != remedy_of("body_limited", product)


PROXIES = (SOURCE / "docs" / "proxies.md").read_text().partition("## The network listener")[2]


@pytest.mark.parametrize("product", ["nginx", "Caddy", "HAProxy", "Apache"])
def test_the_documented_proxies_are_what_the_remedies_make_of_them(product: str) -> None:
    block = PROXIES.partition(f"\n{product}")[2].partition("```")[2].partition("```")[0]
    lines = {line.partition("#")[0].strip() for line in block.splitlines()}
    for code in ("body_limited", "silence_cut", "stream_buffered", "compressed", "answer_replaced"):
        remedy = TABLE[product][code]
        # What says only what holds anyhow need not be there; what must not be there is not.
        if code in ("body_limited", "silence_cut") or (product == "nginx" and code == "stream_buffered"):
            assert {line.strip() for line in remedy.add.splitlines()} <= lines
        for gone in filter(None, remedy.remove.splitlines()):
            added = remedy.add.split()
            assert not any(line.startswith(gone) and line.split()[0] not in added for line in lines), gone
    for code in ("marker_removed", "marker_everywhere", "marker_not_exposed", "origin_refused"):
        for gone in TABLE[product][code].remove.splitlines():
            assert not any(line.lower().startswith(gone.lower()) for line in lines)


@pytest.mark.parametrize("page", ["check-hop", "network-numbers", "proxies"])
def test_operators_are_not_sent_to_source_files(page: str) -> None:
    text = (SOURCE / "docs" / f"{page}.md").read_text()
    assert not re.findall(r"`[\w/]+\.py`|`(?:core|engine|surfaces|store)/", text)


def test_the_list_of_exposed_headers_is_the_nodes_own() -> None:
    assert EXPOSED == cors.EXPOSED


def test_the_node_is_told_to_look_at_itself() -> None:
    assert "its log" in remedy_of("unreachable", "relaydesk")

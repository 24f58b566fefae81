from __future__ import annotations

import pytest

from relaydesk.core.hopcheck.decide import RANKED
from relaydesk.core.hopcheck.effect import effect, verdict_of
from relaydesk.core.relay.blame import RULES


@pytest.mark.parametrize("code", RANKED)
def test_every_finding_says_what_callers_make_of_it(code: str) -> None:
    said = effect(code, "9.10", 502)
    assert said.endswith(".")
    assert "  " not in said


def test_a_missing_marker_charges_the_node_by_the_rule_that_the_client_has() -> None:
    said = effect("marker_removed")
    assert RULES["unmarked_front_door"] in said
    assert "3 such failures" in said
    assert "10 minutes" in said
    assert "it is the target's" in said


def test_a_version_that_promises_no_marker_is_not_charged() -> None:
    said = effect("marker_removed", "9.0")
    assert RULES["unattributed"] in said
    assert "charge nobody" in said


def test_a_browser_that_cannot_see_it_is_as_one_that_got_none() -> None:
    assert effect("marker_not_exposed").endswith(effect("marker_removed"))


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        ("silence_cut", 504, "charge nobody"),
        ("silence_cut", 502, "charge this node"),
        ("body_limited", 413, "last word"),
        ("body_failed", 500, "charge this node"),
        ("body_failed", 504, "charge nobody"),
        ("edge_answers", 403, "last word"),
        ("edge_answers", 503, "charge this node"),
        ("redirected", 301, "last word"),
        ("unreachable", 0, "2 minutes"),
    ],
)
def test_what_the_edge_answers_decides_who_is_charged(code: str, status: int, words: str) -> None:
    assert words in effect(code, "9.10", status)


def test_the_verdicts_are_the_clients() -> None:
    assert verdict_of(502, "", marker=False, version="9.10").rule == "unmarked_front_door"
    assert verdict_of(502, "", marker=True, version="9.10").rule == "marked"
    assert verdict_of(504, "", marker=False, version="9.10").attribution == "unknown"

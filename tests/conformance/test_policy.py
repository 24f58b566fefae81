"""The relay policy against the wire's published vectors, where they are at hand.

RELAYDESK_VECTORS names their folder. They are somebody else's data and not kept here.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.relay import schedule
from relaydesk.core.relay.blame import Evidence, Verdict, classify, front_door, narrow
from relaydesk.core.relay.draw import plain_pick
from relaydesk.core.relay.eligible import Candidate, eligible, first_tier
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.relay.version import at_least, compatible

FOLDER = Path(os.environ.get("RELAYDESK_VECTORS") or ".none")
if not FOLDER.is_dir():
    pytest.skip("set RELAYDESK_VECTORS to the folder of the wire's vectors", allow_module_level=True)

TRANSIENT: dict[str, Any] = json.loads((FOLDER / "transient_vectors.json").read_text())
SELECTION: dict[str, Any] = json.loads((FOLDER / "selection_vectors.json").read_text())


def cases(source: dict[str, Any], name: str) -> Any:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in source[name]])


def shown(verdict: Verdict) -> dict[str, Any]:
    """A verdict as the vectors write it: nobody is an empty string there."""
    attribution = "" if verdict.attribution == "none" else verdict.attribution
    return {"retryable": verdict.retryable, "attribution": attribution}


def test_the_schedule() -> None:
    wanted = TRANSIENT["schedule"]
    assert wanted["inner_attempts"] == schedule.INNER_ATTEMPTS
    assert wanted["sweeps"] == schedule.SWEEPS
    assert wanted["overall_deadline_ms"] == schedule.OVERALL_MS
    assert list(schedule.INNER_DELAYS_MS) == wanted["inner_delays_ms"]
    assert list(schedule.SWEEP_DELAYS_MS) == wanted["sweep_delays_ms"]


@cases(TRANSIENT, "classify_cases")
def test_classify(case: dict[str, Any]) -> None:
    assert shown(classify(case["status"], case["code"])) == case["expected"]


@cases(TRANSIENT, "narrow_cases")
def test_narrow(case: dict[str, Any]) -> None:
    verdict = classify(case["status"], case["code"])
    assert shown(narrow(verdict, case["status"], Evidence(**case["evidence"]))) == case["expected"]


@cases(TRANSIENT, "version_cases")
def test_versions(case: dict[str, Any]) -> None:
    assert compatible(case["version"]) == case["compatible"]
    assert at_least(case["version"], 9, 1) == case["at_least_hop_marker"]


@cases(TRANSIENT, "front_door_cases")
def test_front_door(case: dict[str, Any]) -> None:
    assert front_door(case["status"]) == case["front_door"]


@cases(TRANSIENT, "wait_cases")
def test_wait(case: dict[str, Any]) -> None:
    delay = schedule.wait(case["scheduled_ms"], case["retry_after_ms"], case["remaining_ms"])
    assert (delay is not None, delay or 0) == (case["expected_ok"], case["expected_ms"])


@cases(SELECTION, "relay_cases")
def test_relays(case: dict[str, Any]) -> None:
    pool = [
        Candidate(
            NodeRef(node["id"], node["node_id"]),
            node["owner_addr"],
            node["base_url"],
            node["proto_version"],
            node["reachable"],
        )
        for node in case["operators"]
    ]
    where = NodeRef(case["target_id"], case.get("target_node_id", 0))
    target = next(node for node in pool if node.ref == where)
    kept, _ = eligible(target, pool)
    tier = first_tier(kept)
    assert (not tier) == case["expected"]["no_relay"]
    if tier:
        relay = tier[plain_pick(len(tier), case["seed"])]
        assert relay.ref.operator == case["expected"]["relay_id"]
        assert relay.ref.node == case["expected"].get("relay_node_id", relay.ref.node)

from __future__ import annotations

import json
from typing import Any

import pytest

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.call_deltas import CallDelta, CallSequence
from relaydesk.core.gateway.toolcalls import CallTracker


def through_tracker(*deltas: Any) -> list[CallDelta]:
    tracker, sequence = CallTracker("call"), CallSequence()
    regular = [tracker.read(json.dumps([delta]).encode()) for delta in deltas]
    return [found for data in regular if data for found in sequence.read(data)]


def test_calls_come_one_after_the_other() -> None:
    first = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":'}}
    more = {"index": 0, "function": {"arguments": "1}"}}
    second = {"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}}
    assert through_tracker(first, more, second) == [
        CallDelta(rb'"{\"x\":"', "a", "f"),
        CallDelta(b'"1}"'),
        CallDelta(b'""', "b", "g"),
    ]


def test_a_call_that_goes_on_after_the_next_has_begun_is_the_engines_fault() -> None:
    deltas = [{"index": n, "id": str(n), "function": {"name": "f", "arguments": "{"}} for n in (0, 1)]
    late = {"index": 0, "function": {"arguments": "}"}}
    with pytest.raises(PeerError) as caught:
        through_tracker(*deltas, late)
    assert caught.value.fault.code == "engine_failed"

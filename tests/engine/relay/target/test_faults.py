"""A gateway's fault as a paid request is told it."""

from __future__ import annotations

import json

import pytest

from relaydesk.core.errors import Fault
from relaydesk.core.relay.catalogue import WireError
from relaydesk.engine.relay.target.faults import of_gateway, of_wire


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("queue_full", 503, "provider_overloaded"),
        ("engine_failed", 503, "provider_overloaded"),
        ("model_unloaded", 503, "provider_overloaded"),
        ("shutting_down", 503, "provider_overloaded"),
        ("context_length_exceeded", 400, "context_length_exceeded"),
        ("invalid_request", 400, "invalid_request"),
        ("unsupported", 400, "unsupported"),
        ("internal_error", 500, "internal_error"),
    ],
)
def test_what_is_said(code: str, status: int, said: str) -> None:
    found = of_gateway(Fault(code, "why", "and what to do"))
    assert found.status == status
    assert json.loads(found.body)["error"]["code"] == said


def test_a_busy_node_says_nothing_of_its_own() -> None:
    assert b"secret" not in of_gateway(Fault("engine_failed", "the secret reason")).body


def test_our_own_refusals_are_the_wires() -> None:
    found = of_wire(WireError("model_mismatch", "no"))
    assert (found.status, json.loads(found.body)["error"]["type"]) == (400, "model_mismatch")

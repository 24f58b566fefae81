"""Faults in Anthropic's shape."""

from __future__ import annotations

import json

import pytest

from relaydesk.core.errors import ERRORS, Fault
from relaydesk.core.gateway.anthropic.errors import anthropic_error_event, anthropic_error_reply
from tests.support.pieces import events


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("invalid_request", 400, "invalid_request_error"),
        ("method_not_allowed", 405, "invalid_request_error"),
        ("invalid_api_key", 401, "authentication_error"),
        ("refused", 403, "permission_error"),
        ("model_not_found", 404, "not_found_error"),
        ("request_too_large", 413, "request_too_large"),
        ("queue_full", 429, "rate_limit_error"),
        ("engine_failed", 502, "api_error"),
        ("model_unavailable", 503, "api_error"),
        ("shutting_down", 503, "overloaded_error"),
    ],
)
def test_a_fault_has_a_kind_and_a_sentence(code: str, status: int, kind: str) -> None:
    reply = anthropic_error_reply(Fault(code, "No", "do it so", param="x"))
    assert reply.status == status
    assert json.loads(reply.body) == {"type": "error", "error": {"type": kind, "message": "No: do it so"}}
    assert (reply.headers.get("x-should-retry") == "false") is not ERRORS[code].retry


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("The context has 5 tokens", "prompt is too long: The context has 5 tokens"),
        ("The prompt is too long for it", "The prompt is too long for it"),
    ],
)
def test_a_prompt_that_is_too_long_says_so_once(said: str, told: str) -> None:
    reply = anthropic_error_reply(Fault("context_length_exceeded", said))
    assert json.loads(reply.body)["error"]["message"] == told


def test_in_a_stream_it_is_an_event() -> None:
    (event,) = events(anthropic_error_event(Fault("engine_failed", "cannot read /home/me/x.gguf")))
    assert (event["type"], event["error"]["type"]) == ("error", "api_error")
    assert "/home" not in event["error"]["message"]

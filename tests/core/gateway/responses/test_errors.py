from __future__ import annotations

import json

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.errors import error_body
from relaydesk.core.gateway.responses.errors import error_members, failure

FAULT = Fault("context_length_exceeded", "too long", "shorten it", param="input")


def test_an_error_is_said_flat_and_nested() -> None:
    members = json.loads(b"{" + error_members(FAULT) + b"}")
    assert members == {
        "code": "context_length_exceeded",
        "message": "too long: shorten it",
        "param": "input",
        **json.loads(error_body(FAULT)),
    }


def test_a_failed_response_says_why() -> None:
    assert json.loads(failure(FAULT)) == {
        "code": "context_length_exceeded",
        "message": "too long: shorten it",
    }


def test_no_path_gets_out() -> None:
    fault = Fault("engine_failed", "cannot read /home/me/models/x.gguf")
    for data in (failure(fault), error_members(fault)):
        assert b"/home" not in data

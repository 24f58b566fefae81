"""Errors in OpenAI's shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relaydesk.core.errors import ERRORS, Fault
from relaydesk.core.gateway.errors import error_body, error_frame, error_reply


def body(fault: Fault) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(error_body(fault))
    return found


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_every_code_has_the_shape(code: str) -> None:
    reply = error_reply(Fault(code, "it failed", param="x"))
    error = json.loads(reply.body)["error"]
    assert error == {"message": "it failed", "type": ERRORS[code].type, "param": "x", "code": code}
    assert reply.status == ERRORS[code].status
    assert reply.headers["Content-Type"].startswith("application/json")
    assert ("x-should-retry" in reply.headers) is not ERRORS[code].retry


def test_the_body_of_a_model_that_cannot_be_placed_is_the_seeds_to_the_letter() -> None:
    sentence = '"qwen3-70b" needs about 48000 MB and the whole pool tops out at 30720 MB — no'
    assert body(Fault("model_unavailable", sentence)) == {
        "error": {"message": sentence, "type": "model_unavailable", "code": "model_unavailable"}
    }


def test_param_is_null_elsewhere_and_the_hint_is_part_of_the_message() -> None:
    assert body(Fault("invalid_json", "the body is bad.", "send JSON"))["error"] == {
        "message": "the body is bad: send JSON",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_json",
    }


def test_headers() -> None:
    assert error_reply(Fault("queue_full", "busy", retry_after=3)).headers["Retry-After"] == "3"
    assert "Retry-After" not in error_reply(Fault("invalid_request", "no", retry_after=3)).headers
    assert error_reply(Fault("invalid_api_key", "no")).headers["WWW-Authenticate"].startswith("Bearer")


def test_the_frame_of_a_stream_that_failed() -> None:
    frame = error_frame(Fault("engine_failed", "the engine failed"))
    assert frame.startswith(b'data: {"error":{') and frame.endswith(b"}}\n\n")
    assert b"finish_reason" not in frame and b"DONE" not in frame


def test_no_path_or_port_of_ours_gets_out() -> None:
    said = body(Fault("model_load_failed", "cannot open /srv/models/x.gguf for 127.0.0.1:8081"))["error"][
        "message"
    ]
    assert said == "cannot open (file) for (address)"

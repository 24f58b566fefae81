"""What an engine's error means to the client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.gateway.faults import engine_fault

RECORDED = Path(__file__).parent / "recorded"


def of(status: int, message: str = "", **fields: Any) -> tuple[str, str]:
    fault = engine_fault(
        status, json.dumps({"error": {"message": message, "code": status, **fields}}).encode()
    )
    return fault.code, fault.message


def test_a_recorded_overflow() -> None:
    fault = engine_fault(400, (RECORDED / "overflow.json").read_bytes())
    assert fault.code == "context_length_exceeded"
    assert "maximum context length is 512 tokens" in fault.message
    assert "731 tokens" in fault.message
    assert (fault.param, fault.rule.status, fault.rule.retry) == ("messages", 400, False)


def test_an_overflow_in_other_engines_words() -> None:
    code, message = of(
        400,
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in it)",
    )
    assert code == "context_length_exceeded"
    assert "maximum context length is 4096 tokens" in message and "5000" in message
    assert of(400, "prompt is too long")[0] == "context_length_exceeded"
    assert of(400, "x", code="context_length_exceeded")[0] == "context_length_exceeded"


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "Failed to initialize samplers", "engine_rejected"),
        (422, "no", "engine_rejected"),
        (500, "Jinja Exception: roles must alternate", "engine_rejected"),
        (500, "image input is not supported - hint: you may need to provide the mmproj", "unsupported"),
        (500, "boom", "engine_failed"),
        (401, "Invalid API Key", "engine_failed"),
        (404, "File Not Found", "engine_failed"),
        (503, "Loading model", "engine_failed"),
        (429, "slow down", "queue_full"),
        (501, "not enabled", "unsupported"),
        (502, "", "engine_failed"),
    ],
)
def test_codes(status: int, message: str, code: str) -> None:
    assert of(status, message)[0] == code


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("Failed to initialize samplers: failed to parse grammar", "response_format"),
        ("JSON schema error at #: unrecognized type x", "response_format"),
        ("Jinja Exception: Conversation roles must alternate", "messages"),
        ("Cannot have 2 or more assistant messages at the end of the list.", "messages"),
        ("Field 'repeat_last_n': Value must be between 0 <= value <= 9", "repeat_last_n"),
        ("unknown tool", "tools"),
        ("no", None),
    ],
)
def test_the_field_that_an_engine_complains_about(message: str, param: str | None) -> None:
    fault = engine_fault(400, json.dumps({"error": {"message": message}}).encode())
    assert (fault.code, fault.param) == ("engine_rejected", param)


def test_our_key_is_no_business_of_the_client() -> None:
    assert "key" not in of(401, "Invalid API Key")[1].lower()


def test_a_status_inside_a_stream_is_the_code_of_the_error() -> None:
    assert engine_fault(0, b'{"error":{"code":400,"message":"bad"}}').code == "engine_rejected"
    assert engine_fault(0, b'{"error":{"code":"x","message":"bad"}}').code == "engine_failed"
    assert engine_fault(0, b'{"error":{"code":200}}').code == "engine_failed"


def test_no_path_of_the_engine_gets_out() -> None:
    assert (
        of(500, "cannot read models/x.gguf from /srv/y")[1]
        == "the engine failed: cannot read (file) from (file)"
    )


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 700),
    st.binary(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: st.dictionaries(
            st.sampled_from(["error", "message", "code", "type", "n_ctx", "n_prompt_tokens"]),
            inner,
            max_size=5,
        ),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode()),
)
def test_any_answer_is_a_fault(status: int, body: bytes) -> None:
    fault = engine_fault(status, body)
    assert fault.message and "\n" not in fault.message
    assert fault.rule.status >= 400

from __future__ import annotations

import json

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.ollama.errors import ollama_error_line, ollama_error_reply

FULL = Fault("queue_full", "no place", "try again", param="model", retry_after=2)


def test_the_error_is_one_plain_string() -> None:
    reply = ollama_error_reply(FULL)
    assert reply.status == 429
    assert json.loads(reply.body) == {"error": "no place: try again"}
    assert reply.headers["Retry-After"] == "2"
    assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
    assert ollama_error_reply(Fault("invalid_request", "bad")).headers["x-should-retry"] == "false"


def test_in_a_stream_it_is_one_line() -> None:
    line = ollama_error_line(FULL)
    assert line.endswith(b"}\n") and line.count(b"\n") == 1
    assert json.loads(line) == json.loads(ollama_error_reply(FULL).body)

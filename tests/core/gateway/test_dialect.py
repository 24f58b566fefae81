from __future__ import annotations

import json

import pytest

from relaydesk.core.errors import Fault
from relaydesk.core.gateway.dialect import dialect_of, dialect_reply


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        ("/v1/chat/completions", "openai"),
        ("/api/chat", "ollama"),
        ("/api", "ollama"),
        ("/apiary", "openai"),
        ("/v1/messages", "anthropic"),
        ("/v1/messages/count_tokens", "anthropic"),
        ("/v1/messagesx", "openai"),
        ("/v1/responses", "openai"),
        ("/", "openai"),
        ("/nowhere", "openai"),
    ],
)
def test_the_path_tells_the_dialect(path: str, dialect: str) -> None:
    assert dialect_of(path) == dialect


def test_each_dialect_says_an_error_in_its_shape() -> None:
    fault = Fault("invalid_request", "no", param="n")
    assert json.loads(dialect_reply("/v1/x", fault).body)["error"]["param"] == "n"
    assert json.loads(dialect_reply("/api/x", fault).body) == {"error": "no"}
    reply = json.loads(dialect_reply("/v1/messages", fault).body)
    assert reply == {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}

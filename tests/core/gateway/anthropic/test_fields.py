"""The fields of a message's request that no chat has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.anthropic.fields import (
    ENVELOPE,
    Envelope,
    Thinking,
    check_fields,
    options_of,
    output_of,
    thinking_of,
)
from relaydesk.core.gateway.decode import decode

CLEAR = {"type": "clear_thinking_20251015", "keep": "all"}
SCHEMA = {"type": "object"}
FORMAT = {"type": "json_schema", "schema": SCHEMA}


def envelope(**fields: Any) -> Envelope:
    return decode(ENVELOPE, json.dumps(fields).encode())


def test_what_changes_nothing_is_accepted() -> None:
    check_fields(
        envelope(
            metadata={"user_id": "u"},
            service_tier="auto",
            mcp_servers=[],
            container=None,
            context_management={"edits": [CLEAR]},
            temperature=1,
            stop_sequences=["x"],
        )
    )
    check_fields(envelope(context_management={"edits": None}))


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"container": "c"}, "unsupported", "container"),
        ({"mcp_servers": [{"type": "url"}]}, "unsupported", "mcp_servers"),
        ({"temperature": 1.5}, "invalid_request", "temperature"),
        ({"temperature": "hot"}, "invalid_request", "temperature"),
        ({"stop_sequences": "x"}, "invalid_request", "stop_sequences"),
        (
            {"context_management": {"edits": [CLEAR, {"type": "clear_tool_uses_20250919"}]}},
            "unsupported",
            "context_management.edits[1]",
        ),
        (
            {"context_management": {"edits": [{**CLEAR, "keep": {"type": "thinking_turns", "value": 1}}]}},
            "unsupported",
            "context_management.edits[0]",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(fields: Any, code: str, param: str) -> None:
    with pytest.raises(PeerError) as caught:
        check_fields(envelope(**fields))
    assert (caught.value.fault.code, caught.value.fault.param) == (code, param)


@pytest.mark.parametrize(
    ("given", "thinking", "options"),
    [
        (None, Thinking(), None),
        ({"type": "adaptive"}, Thinking(), None),
        ({"type": "adaptive", "display": "omitted"}, Thinking(None, shown=False), None),
        ({"type": "enabled", "budget_tokens": 2000}, Thinking(True), {"enable_thinking": True}),
        ({"type": "disabled"}, Thinking(False), {"enable_thinking": False}),
    ],
)
def test_thinking(given: Any, thinking: Thinking, options: Any) -> None:
    fields = envelope(thinking=given)
    assert thinking_of(fields.thinking) == thinking
    found = options_of(thinking, fields.chat_template_kwargs)
    assert (json.loads(found) if found else None) == options


def test_what_a_client_tells_the_template_itself_counts() -> None:
    fields = envelope(chat_template_kwargs={"enable_thinking": False})
    assert json.loads(options_of(Thinking(True), fields.chat_template_kwargs)) == {"enable_thinking": False}


def test_another_way_to_think_is_refused() -> None:
    with pytest.raises(PeerError) as caught:
        thinking_of(envelope(thinking={"type": "between_tools"}).thinking)
    assert (caught.value.fault.code, caught.value.fault.param) == ("unsupported", "thinking.type")


@pytest.mark.parametrize(
    ("fields", "effort", "at"),
    [
        ({}, None, ""),
        ({"output_config": {"effort": "low"}}, "low", ""),
        ({"output_config": {"effort": "low", "format": FORMAT}}, "low", "output_config.format"),
        ({"output_format": FORMAT}, None, "output_format"),
    ],
)
def test_output(fields: Any, effort: str | None, at: str) -> None:
    given = envelope(**fields)
    found, body, name = output_of(given.output_config, given.output_format)
    assert (found, name) == (effort, at)
    assert (json.loads(body)["json_schema"]["schema"] if body else None) == (SCHEMA if at else None)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"output_format": {"type": "xml"}}, "output_format.type"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
        ({"output_config": {"effort": 3}}, "output_config.effort"),
    ],
)
def test_outputs_that_cannot_be(fields: Any, param: str) -> None:
    given = envelope(**fields)
    with pytest.raises(PeerError) as caught:
        output_of(given.output_config, given.output_format)
    assert caught.value.fault.param == param

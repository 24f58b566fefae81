"""A chat request as a plan: what the engine is asked, and how the answer is said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.chat import chat_plan
from relaydesk.core.gateway.output import Identity, Spent
from relaydesk.core.gateway.usage import Tally, Usage
from relaydesk.core.gateway.work import Capabilities, Plan

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def plan(**fields: Any) -> Plan:
    return chat_plan(json.dumps({"messages": [{"role": "user", "content": "Hi"}], **fields}).encode())


def test_what_the_engine_is_asked() -> None:
    work = plan(model="m", n=2, seed=7, stream=True).work
    assert (work.model, work.stream, work.choices, work.path) == ("m", True, 2, "/v1/chat/completions")
    bodies = [
        json.loads(work.body(n, alias="a", slot=n, cache_prompt=True, extensions=True)) for n in range(2)
    ]
    assert [(b["model"], b["id_slot"], b["seed"], b["stream"]) for b in bodies] == [
        ("a", 0, 7, True),
        ("a", 1, 8, True),
    ]
    assert work.usage([Tally(prompt_tokens=3, completion_tokens=2)] * 2, cached=True).total_tokens == 7


def test_what_the_model_cannot_do_is_refused_by_name() -> None:
    work = plan(tools=[TOOL]).work
    assert work.fitted(Capabilities(tools=True)).choices == 1
    with pytest.raises(PeerError) as caught:
        work.fitted(Capabilities())
    assert (caught.value.fault.code, caught.value.fault.param) == ("unsupported", "tools")


def test_usage_is_said_where_it_was_asked_for() -> None:
    me = Identity("abc", "m", 5000)
    for asked in (True, False):
        output = plan(stream=True, stream_options={"include_usage": asked}).output(me)
        assert (b'"usage"' in output.close(Usage(1, 2, 3), Spent())) is asked

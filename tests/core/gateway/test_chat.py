"""A chat request as a plan: what the engine is asked, and how the answer is said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.call_reader import CallReader
from relaydesk.core.gateway.chat import chat_plan
from relaydesk.core.gateway.json_reader import JsonReader
from relaydesk.core.gateway.output import Identity, Spent
from relaydesk.core.gateway.piece import ChoiceStream
from relaydesk.core.gateway.stop import StopReader
from relaydesk.core.gateway.usage import Tally, Usage
from relaydesk.core.gateway.work import Capabilities, Plan, Work

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


def asked(work: Work, extensions: bool = True) -> Any:
    return json.loads(work.body(0, alias="m", slot=0, cache_prompt=True, extensions=extensions))


def test_a_forced_call_is_bound_whatever_the_model() -> None:
    forced = plan(
        tools=[TOOL, {"name": "g"}],
        tool_choice={"type": "function", "function": {"name": "f"}},
        stop=["x"],
        logprobs=True,
        top_logprobs=2,
        parallel_tool_calls=True,
        response_format={"type": "json_object"},
    ).work
    for capabilities in (Capabilities(), Capabilities(tools=True)):
        body = asked(forced.fitted(capabilities))
        assert not body.keys() & {
            "tools",
            "tool_choice",
            "stop",
            "logprobs",
            "top_logprobs",
            "parallel_tool_calls",
        }
        call = body["response_format"]["json_schema"]["schema"]
        assert call["properties"]["name"] == {"enum": ["f"]}
        assert [each["role"] for each in body["messages"]] == ["system", "user"]
        assert '"f"' in body["messages"][0]["content"] and '"g"' not in body["messages"][0]["content"]
    reader = forced.reader(1, "call_t_1")
    assert isinstance(reader, CallReader) and reader.call_id == "call_t_1_0"


def test_how_an_answer_is_read() -> None:
    assert type(plan().work.reader(0, "c")) is ChoiceStream
    assert isinstance(plan(stop="x").work.reader(0, "c"), StopReader)
    schema = {"type": "json_object"}
    assert isinstance(plan(response_format=schema).work.reader(0, "c"), JsonReader)
    # A stop text may cut JSON anywhere.
    assert isinstance(plan(response_format=schema, stop=["x"]).work.reader(0, "c"), StopReader)


def test_earlier_calls_are_told_as_text_where_the_template_speaks_no_tools() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "42"},
    ]
    work = plan(messages=messages).work
    told = asked(work.fitted(Capabilities()))["messages"]
    assert [each["role"] for each in told] == ["user", "assistant", "user"]
    assert "42" in told[2]["content"] and '"f"' in told[1]["content"]
    native = work.fitted(Capabilities(tools=True))
    assert [each["role"] for each in asked(native)["messages"]] == ["user", "assistant", "tool"]
    assert native is work
    assert asked(work.fitted(Capabilities()).limited(3))["max_tokens"] == 3


@pytest.mark.parametrize(
    ("asked", "allowed", "sent"), [(None, 9, 9), (4, 9, 4), (40, 9, 9)], ids=["open", "less", "more"]
)
def test_what_a_key_has_left_bounds_an_answer(asked: int | None, allowed: int, sent: int) -> None:
    work = plan(max_tokens=asked).work.limited(allowed)
    told = json.loads(work.body(0, alias="a", slot=0, cache_prompt=True, extensions=True))
    assert (told["max_tokens"], work.limit) == (sent, sent)

"""Tool calls and results as text, for templates that know neither."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from relaydesk.core.gateway.messages import rebuild_messages
from relaydesk.core.gateway.told_calls import told_calls


def told(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    rebuilt = rebuild_messages(Raw(json.dumps(messages).encode())).body
    found: list[dict[str, Any]] = json.loads(told_calls(rebuilt))
    return found


def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


USER = {"role": "user", "content": "Weather?"}
PARIS = call("c1", "weather", '{"city": "Paris"}')
ROME = call("c2", "time", "{}")


def test_a_call_and_its_result() -> None:
    assert told(
        {"role": "system", "content": "Be brief."},
        USER,
        {"role": "assistant", "content": None, "tool_calls": [PARIS]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny\n"},
    ) == [
        {"role": "system", "content": "Be brief."},
        USER,
        {"role": "assistant", "content": '{"name": "weather", "arguments": {"city": "Paris"}}'},
        {"role": "user", "content": "The function weather returned:\nsunny\n"},
    ]


def test_several_calls_with_text_and_a_question_behind() -> None:
    found = told(
        USER,
        {
            "role": "assistant",
            "content": "One moment.",
            "tool_calls": [PARIS, ROME],
            "reasoning_content": "hm",
        },
        {"role": "tool", "tool_call_id": "c2", "content": "noon"},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "sunny"}]},
        {"role": "user", "content": "And?"},
    )
    assert found[1] == {
        "role": "assistant",
        "content": 'One moment.\n{"name": "weather", "arguments": {"city": "Paris"}}\n'
        '{"name": "time", "arguments": {}}',
        "reasoning_content": "hm",
    }
    assert found[2:] == [
        {
            "role": "user",
            "content": "The function time returned:\nnoon\n\nThe function weather returned:\nsunny\n\nAnd?",
        }
    ]


def test_results_that_belong_to_nothing() -> None:
    found = told(
        {"role": "function", "name": "f", "content": "1"},
        {"role": "tool", "content": ""},
        {"role": "assistant", "content": "a"},
        USER,
    )
    assert found[0] == {
        "role": "user",
        "content": "The function f returned:\n1\n\nThe function returned:\n",
    }
    assert [each["role"] for each in found] == ["user", "assistant", "user"]


def test_results_before_an_image() -> None:
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    found = told(
        {"role": "tool", "name": "f", "content": "1"},
        {"role": "user", "content": [{"type": "text", "text": "?"}, url]},
    )
    assert found == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "The function f returned:\n1"},
                {"type": "text", "text": "?"},
                url,
            ],
        }
    ]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "assistant", "tool", "system"]), TEXT), min_size=1, max_size=8
    )
)
def test_all_text_is_kept_and_no_two_users_follow_results(turns: list[tuple[str, str]]) -> None:
    turns = [*turns, ("user", "end")]
    found = told(*({"role": role, "content": text} for role, text in turns))
    assert {each["role"] for each in found} <= {"user", "assistant", "system"}
    whole = "".join(each["content"] for each in found)
    for _, text in turns:
        assert text in whole
    for role, text in turns:
        if role == "tool":
            assert any(each["role"] == "user" and f"returned:\n{text}" in each["content"] for each in found)

"""Content blocks as the messages of a chat."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.anthropic.blocks import chat_messages
from relaydesk.core.gateway.field_names import FieldNames
from relaydesk.core.gateway.messages import rebuild_messages

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": [1, "é\n"]}}
IMAGE: dict[str, Any] = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words, "cache_control": {"type": "ephemeral"}}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def result(call_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, **fields}


def chat(messages: Any, system: Any = None) -> Any:
    """The messages as the engine gets them."""
    raw = Raw(json.dumps(messages).encode())
    body = chat_messages(Raw(json.dumps(system).encode()), raw, FieldNames({}))
    return json.loads(rebuild_messages(Raw(body)).body)


@given(TEXTS, TEXTS)
def test_strings_are_what_is_said(said: str, system: str) -> None:
    assert chat([user(said)], system) == [
        {"role": "system", "content": system},
        {"role": "user", "content": said},
    ]


def test_blocks_of_text_are_lines_of_one_message() -> None:
    messages = chat([user([text("a"), text("b")])], [text("Be brief."), text("Be kind.")])
    assert [m["content"] for m in messages] == ["Be brief.\nBe kind.", "a\nb"]


def test_turns_of_one_role_are_one_message() -> None:
    messages = chat([user("a"), user([text("b")]), assistant("c"), assistant("d"), user([])])
    assert [(m["role"], m["content"]) for m in messages] == [
        ("user", "a\nb"),
        ("assistant", "c\nd"),
        ("user", ""),
    ]


def test_a_system_message_may_stand_between() -> None:
    roles = [m["role"] for m in chat([user("a"), {"role": "system", "content": "b"}, user("c")], "s")]
    assert roles == ["system", "user", "system", "user"]


def test_an_image_becomes_data() -> None:
    (message,) = chat([user([IMAGE, text("What is it?")])])
    assert message["content"][0] == {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,aGk="},
    }


def test_a_round_of_tools() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    sealed = {"type": "redacted_thinking", "data": "x"}
    messages = chat(
        [
            user("Go"),
            assistant([thinking, sealed, text("I look."), USE, {**USE, "id": "t2", "input": {}}]),
            user([result("t1", content="42"), result("t2", content=[text("a"), text("b")], is_error=True)]),
            user([text("Well?")]),
        ]
    )
    call = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"x": [1, "é\\n"]}'}}
    assert json.loads(messages[1]["tool_calls"][0]["function"]["arguments"]) == USE["input"]
    assert messages[1] == {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "Hm.",
        "tool_calls": [
            {**call, "function": messages[1]["tool_calls"][0]["function"]},
            {"id": "t2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        ],
    }
    assert messages[2:] == [
        {"role": "tool", "content": "42", "tool_call_id": "t1"},
        {"role": "tool", "content": "a\nb", "tool_call_id": "t2"},
        {"role": "user", "content": "Well?"},
    ]


def test_what_was_said_before_a_result_comes_before_it() -> None:
    roles = [(m["role"], m["content"]) for m in chat([user([text("a"), result("t1"), text("b")])])]
    assert roles == [("user", "a"), ("tool", ""), ("user", "b")]


def test_a_conversation_may_end_with_results() -> None:
    roles = [m["role"] for m in chat([user("Go"), assistant([USE]), user([result("t1", content="42")])])]
    assert roles == ["user", "assistant", "tool"]


@pytest.mark.parametrize(
    ("messages", "system", "code", "param"),
    [
        (None, None, "invalid_request", "messages"),
        ("Hi", None, "invalid_request", "messages"),
        ([7], None, "invalid_request", "messages[0]"),
        ([{"content": "a"}], None, "invalid_request", "messages[0].role"),
        ([{"role": "tool", "content": "a"}], None, "invalid_request", "messages[0].role"),
        ([{"role": "user"}], None, "invalid_request", "messages[0].content"),
        ([user(7)], None, "invalid_request", "messages[0].content"),
        ([user([7])], None, "invalid_request", "messages[0].content[0]"),
        ([user([{"text": "a"}])], None, "invalid_request", "messages[0].content[0].type"),
        ([user([{"type": "text"}])], None, "invalid_request", "messages[0].content[0].text"),
        ([user([{"type": "document"}])], None, "unsupported", "messages[0].content[0]"),
        ([user([USE])], None, "unsupported", "messages[0].content[0]"),
        ([assistant([IMAGE])], None, "unsupported", "messages[0].content[0]"),
        ([assistant([{"type": "server_tool_use"}])], None, "unsupported", "messages[0].content[0]"),
        ([assistant([{**USE, "input": "{}"}])], None, "invalid_request", "messages[0].content[0].input"),
        ([assistant([{**USE, "id": None}])], None, "invalid_request", "messages[0].content[0].id"),
        ([assistant([{**USE, "name": 1}])], None, "invalid_request", "messages[0].content[0].name"),
        (
            [assistant([{"type": "thinking", "thinking": 1}])],
            None,
            "invalid_request",
            "messages[0].content[0].thinking",
        ),
        ([user([result("t", content=7)])], None, "invalid_request", "messages[0].content[0].content"),
        (
            [user([result("t", content=[text("a"), IMAGE])])],
            None,
            "unsupported",
            "messages[0].content[0].content[1]",
        ),
        ([user([{"type": "tool_result"}])], None, "invalid_request", "messages[0].content[0].tool_use_id"),
        (
            [user([{"type": "image", "source": {"type": "url", "url": "http://x"}}])],
            None,
            "unsupported",
            "messages[0].content[0].source",
        ),
        ([user([{"type": "image"}])], None, "invalid_request", "messages[0].content[0].source.type"),
        (
            [user([{"type": "image", "source": {**IMAGE["source"], "media_type": "text/html"}}])],
            None,
            "invalid_request",
            "messages[0].content[0].source.media_type",
        ),
        ([user("a")], [IMAGE], "unsupported", "system[0]"),
        ([user("a")], [{"type": "text", "text": 1}], "invalid_request", "system[0].text"),
        ([user("a")], 7, "invalid_request", "system"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(messages: Any, system: Any, code: str, param: str) -> None:
    with pytest.raises(PeerError) as caught:
        chat(messages, system)
    fault = caught.value.fault
    assert (fault.code, fault.param) == (code, param)
    assert param in fault.message


def test_names_lead_back_to_the_blocks() -> None:
    names = FieldNames({})
    messages = [user("a"), user([text("b"), IMAGE]), assistant([text("c"), USE]), user([result("t1")])]
    chat_messages(Raw(b'"s"'), Raw(json.dumps(messages).encode()), names)
    for ours, theirs in (
        ("messages[0]", "system"),
        ("messages[1].content[0]", "messages[0].content"),
        ("messages[1].content[2].image_url", "messages[1].content[1].image_url"),
        ("messages[2].tool_calls[0].function.arguments", "messages[2].content[1].input"),
        ("messages[3].tool_call_id", "messages[3].content[0].tool_call_id"),
    ):
        assert names(ours) == theirs

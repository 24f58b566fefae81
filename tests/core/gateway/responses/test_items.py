"""Input items as the messages of a chat."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.field_names import FieldNames
from relaydesk.core.gateway.messages import rebuild_messages
from relaydesk.core.gateway.responses.items import chat_messages

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"x":1}'}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "42"}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
PIXEL = "data:image/png;base64,aGk="


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content, **more}


def thought(**fields: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], **fields}


def chat(input_: Any, instructions: Any = None) -> Any:
    """The messages as the engine gets them."""
    given = json.dumps(instructions).encode()
    body = chat_messages(Raw(json.dumps(input_).encode()), Raw(given), FieldNames({}))
    return json.loads(rebuild_messages(Raw(body)).body)


@given(TEXTS, TEXTS)
def test_a_string_is_what_the_user_says(text: str, instructions: str) -> None:
    assert chat(text) == [{"role": "user", "content": text}]
    assert chat(text, instructions)[0] == {"role": "system", "content": instructions}


def test_instructions_and_developer_messages_lead() -> None:
    messages = chat([said("developer", "Be brief."), said("user", "Hi")], "You are Ada.")
    assert messages == [
        {"role": "system", "content": "You are Ada.\n\nBe brief."},
        {"role": "user", "content": "Hi"},
    ]


def test_a_message_needs_no_type_and_may_have_parts() -> None:
    parts = [{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b", "annotations": []}]
    assert chat([{"role": "user", "content": parts}]) == [{"role": "user", "content": "a\nb"}]
    refusal = [{"type": "refusal", "refusal": "No."}]
    assert chat([said("assistant", refusal, id="msg_1", status="completed")])[0]["content"] == "No."


def test_an_image_stays_where_it_stood() -> None:
    parts = [
        {"type": "input_text", "text": "a"},
        {"type": "input_image", "detail": "low", "image_url": PIXEL},
    ]
    (message,) = chat([said("user", parts)])
    assert message["content"] == [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": PIXEL}},
    ]


def test_text_and_calls_are_one_message_and_results_follow() -> None:
    second = {**CALL, "call_id": "c2"}
    items = [
        said("user", "Go"),
        thought(content=[{"type": "reasoning_text", "text": "Hm."}]),
        said("assistant", "I look."),
        CALL,
        second,
        RESULT,
        {**RESULT, "call_id": "c2", "output": [{"type": "input_text", "text": "43"}]},
        said("assistant", "Done."),
    ]
    assert chat(items)[1:] == [
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "Hm.",
            "tool_calls": [CHAT_CALL, {**CHAT_CALL, "id": "c2"}],
        },
        {"role": "tool", "content": "42", "tool_call_id": "c1"},
        {"role": "tool", "content": "43", "tool_call_id": "c2"},
        {"role": "assistant", "content": "Done."},
    ]


def test_text_behind_a_call_opens_a_message() -> None:
    roles = [(m["role"], m["content"]) for m in chat([CALL, said("assistant", "a"), said("assistant", "b")])]
    assert roles == [("assistant", ""), ("assistant", "a"), ("assistant", "b")]


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (thought(summary=[{"type": "summary_text", "text": "S"}]), "S"),
        (thought(content=[], summary=[{"text": "S"}, {"text": "T"}]), "S\nT"),
        (thought(content=[{"text": "C"}], summary=[{"text": "S"}]), "C"),
        (thought(encrypted_content="xyz"), None),
        (thought(content=None), None),
    ],
)
def test_reasoning_is_what_can_be_read_of_it(item: Any, text: str | None) -> None:
    (message,) = chat([item, said("assistant", "a")])
    assert message.get("reasoning_content") == text
    # Thought without a word after it was a turn all the same.
    assert [m["role"] for m in chat([said("user", "a"), item])] == ["user"] + ["assistant"] * (
        text is not None
    )


@pytest.mark.parametrize(
    ("items", "code", "param"),
    [
        (None, "invalid_request", "input"),
        (7, "invalid_request", "input"),
        ([7], "invalid_request", "input[0]"),
        ([{"role": "user"}], "invalid_request", "input[0].content"),
        ([{"content": "a"}], "invalid_request", "input[0].role"),
        ([said("wizard", "a")], "invalid_request", "input[0].role"),
        ([said("user", 7)], "invalid_request", "input[0].content"),
        ([said("user", [{"text": "a"}])], "invalid_request", "input[0].content[0].type"),
        ([said("user", [{"type": "input_text"}])], "invalid_request", "input[0].content[0].text"),
        ([said("user", [{"type": "input_text", "text": 1}])], "invalid_request", "input[0].content[0].text"),
        ([said("user", [{"type": "input_file", "file_id": "f"}])], "unsupported", "input[0].content[0]"),
        ([said("user", [{"type": "input_image", "file_id": "f"}])], "unsupported", "input[0].content[0]"),
        (
            [said("assistant", [{"type": "input_image", "image_url": PIXEL}])],
            "unsupported",
            "input[0].content[0]",
        ),
        ([{**CALL, "call_id": None}], "invalid_request", "input[0].call_id"),
        ([{**CALL, "name": 3}], "invalid_request", "input[0].name"),
        ([{**CALL, "arguments": {}}], "invalid_request", "input[0].arguments"),
        ([{**RESULT, "output": None}], "invalid_request", "input[0].output"),
        (
            [{**RESULT, "output": [{"type": "input_image", "image_url": PIXEL}]}],
            "unsupported",
            "input[0].output[0]",
        ),
        ([CALL, {"type": "item_reference", "id": "msg_1"}], "unsupported", "input[1]"),
        ([CALL, {"type": "web_search_call", "id": "ws_1"}], "unsupported", "input[1].type"),
        ([{"type": 4}], "invalid_request", "input[0].type"),
        ([thought(content=[{"text": 4}])], "invalid_request", "input[0].content[0].text"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(items: Any, code: str, param: str) -> None:
    with pytest.raises(PeerError) as caught:
        chat(items)
    fault = caught.value.fault
    assert (fault.code, fault.param) == (code, param)
    assert param in fault.message


def test_names_lead_back_to_the_items() -> None:
    names = FieldNames({})
    items = [said("user", "a"), thought(content=[{"text": "h"}]), said("assistant", "b"), CALL, CALL, RESULT]
    chat_messages(Raw(json.dumps(items).encode()), Raw(b'"i"'), names)
    for ours, theirs in (
        ("messages[0].content", "instructions"),
        ("messages[1].content[2].image_url", "input[0].content[2].image_url"),
        ("messages[2].content", "input[2].content"),
        ("messages[2].tool_calls[0].function.arguments", "input[3].arguments"),
        ("messages[2].tool_calls[1].id", "input[4].id"),
        ("messages[3].content", "input[5].output"),
    ):
        assert names(ours) == theirs


def test_very_many_items_are_refused() -> None:
    with pytest.raises(PeerError, match="allowed is 8192"):
        chat([said("user", "a")] * 8193)

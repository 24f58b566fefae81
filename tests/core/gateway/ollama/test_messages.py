"""The conversation of /api/chat as that of a chat request."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import decode, decoder
from relaydesk.core.gateway.field_names import FieldNames
from relaydesk.core.gateway.ollama.messages import Conversation, Message, check_count, text_at
from tests.core.gateway.ollama.test_images import PNG

MESSAGES = decoder(list[Message])
PICTURE = base64.b64encode(PNG).decode()


def read(data: bytes, names: FieldNames | None = None) -> Conversation:
    conversation = Conversation(names or FieldNames({}))
    conversation.add_all(decode(MESSAGES, data, "messages"))
    return conversation


def of(conversation: Conversation) -> list[dict[str, Any]]:
    request = json.loads(conversation.body(b'{"stream":true}'))
    assert request.pop("stream")
    found: list[dict[str, Any]] = request.pop("messages")
    assert not request
    return found


def translated(*messages: Any) -> list[dict[str, Any]]:
    conversation = read(json.dumps(list(messages)).encode())
    assert conversation.count == len(messages)
    return of(conversation)


def refused(*messages: Any) -> tuple[str, str | None]:
    with pytest.raises(PeerError) as caught:
        translated(*messages)
    return caught.value.fault.code, caught.value.fault.param


def call(name: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
    function = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return {"function": function, **more}


def test_roles_are_lower_cased_and_text_is_passed_as_it_is() -> None:
    conversation = read(rb'[{"role":"System","content":"\u00e9\/"},{"role":"USER"}]')
    assert conversation.body(b'{"model":"m"}') == (
        rb'{"model":"m","messages":[{"role":"system","content":"\u00e9\/"},{"role":"user","content":""}]}'
    )


def test_thinking_is_kept() -> None:
    assert translated({"role": "assistant", "content": "a", "thinking": "t"}) == [
        {"role": "assistant", "content": "a", "reasoning_content": "t"}
    ]


def test_images_stand_behind_the_text_and_keep_their_names() -> None:
    names = FieldNames({})
    message = {"role": "user", "content": "what?", "images": [PICTURE, PICTURE]}
    conversation = read(json.dumps([{"role": "system", "content": ""}, message]).encode(), names)
    parts = of(conversation)[1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url", "image_url"]
    assert parts[0]["text"] == "what?"
    assert names("messages[1].content[2]") == "messages[1].images[1]"
    assert names("messages[0].content") == "messages[0].content"


def test_arguments_become_text_and_calls_get_ids_that_their_results_share() -> None:
    found = translated(
        {
            "role": "assistant",
            "tool_calls": [call("f", {"x": 1}), call("g", {}), call("f", '{"x":2}')],
        },
        {"role": "tool", "tool_name": "g", "content": "of g"},
        {"role": "tool", "tool_name": "f", "content": "of the first f"},
        {"role": "tool", "content": "of the one that is left"},
        {"role": "tool", "tool_name": "h", "content": "of none"},
    )
    calls = found[0]["tool_calls"]
    assert [each["function"]["arguments"] for each in calls] == ['{"x": 1}', "{}", '{"x":2}']
    ids = [each["id"] for each in calls]
    assert len(set(ids)) == 3
    assert all(len(each) == 9 and each.isalnum() for each in ids)
    assert [(each.get("tool_call_id"), each.get("name")) for each in found[1:]] == [
        (ids[1], "g"),
        (ids[0], "f"),
        (ids[2], "f"),
        (None, "h"),
    ]


def test_ids_of_the_client_are_kept_and_calls_of_two_turns_are_told_apart() -> None:
    turn = [
        {"role": "assistant", "tool_calls": [call("f", {}, id="mine")]},
        {"role": "tool", "tool_call_id": "mine", "content": "1"},
    ]
    own = [
        {"role": "assistant", "tool_calls": [call("f")]},
        {"role": "tool", "tool_name": "f", "content": "2"},
    ]
    found = translated(*turn, *own, *own)
    assert found[0]["tool_calls"][0]["id"] == found[1]["tool_call_id"] == "mine"
    assert found[1]["name"] == "f"
    assert found[2]["tool_calls"][0]["id"] == found[3]["tool_call_id"]
    assert found[4]["tool_calls"][0]["id"] == found[5]["tool_call_id"] != found[3]["tool_call_id"]


def test_a_result_is_never_that_of_a_call_before_the_last_ones() -> None:
    calling = {"role": "assistant", "tool_calls": [call("f")]}
    found = translated(calling, {"role": "user"}, calling, {"role": "tool", "tool_name": "f"})
    assert found[3]["tool_call_id"] == found[2]["tool_calls"][0]["id"]
    assert "tool_call_id" not in translated(calling, calling, *[{"role": "tool", "tool_name": "f"}] * 2)[3]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"content": "x"}, ".role"),
        ({"role": 3}, ".role"),
        (3, ""),
        ({"role": "user", "content": ["x"]}, ".content"),
        ({"role": "user", "content": {"a": 1}}, ".content"),
        ({"role": "assistant", "thinking": 1}, ".thinking"),
        ({"role": "user", "images": "x"}, ".images"),
        ({"role": "user", "images": [3]}, ".images[0]"),
        ({"role": "user", "images": [PICTURE, "?"]}, ".images[1]"),
        ({"role": "user", "images": [PICTURE] * 65}, ".images"),
        ({"role": "assistant", "tool_calls": {}}, ".tool_calls"),
        ({"role": "assistant", "tool_calls": [{}]}, ".tool_calls[0].function"),
        ({"role": "assistant", "tool_calls": [call("f"), {"function": {}}]}, ".tool_calls[1].function.name"),
        ({"role": "assistant", "tool_calls": [call("f", [])]}, ".tool_calls[0].function.arguments"),
        ({"role": "tool", "tool_name": 3}, ".tool_name"),
    ],
)
def test_a_wrong_field_is_named_with_its_message(message: Any, field: str) -> None:
    assert refused({"role": "user", "content": "x"}, message) == ("invalid_request", f"messages[1]{field}")


def test_too_many_messages_are_refused_before_they_are_read() -> None:
    body = b'{"messages":[' + b'{"role":"user", "x":"0123456789"},' * 8192 + b'{"role":"user"}]}'
    with pytest.raises(PeerError, match="allowed is 8192"):
        check_count(body)
    check_count(body[-200_000:])
    with pytest.raises(PeerError, match="allowed is 8192"):
        Conversation(FieldNames({})).add_all([Message("user")] * 8193)


def test_text_is_a_view_of_the_body_until_it_is_written() -> None:
    (message,) = decode(MESSAGES, b'[{"role":"user","content":"hi"}]')
    assert isinstance(text_at(message.content, "x"), memoryview)
    (message,) = decode(MESSAGES, b'[{"role":"user","content":null}]')
    assert text_at(message.content, "x") == text_at(message.thinking, "x") == b'""'

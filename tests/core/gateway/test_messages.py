"""The conversation as an engine gets it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.messages import MAX_MESSAGES, rebuild_messages

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}


def rebuild(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(rebuild_messages(Raw(json.dumps(messages).encode())).body)
    return found


def refused(*messages: Any) -> tuple[str, str | None, str]:
    with pytest.raises(PeerError) as caught:
        rebuild_messages(Raw(json.dumps(messages).encode()))
    fault = caught.value.fault
    return fault.code, fault.param, fault.message


def test_developer_is_system() -> None:
    assert rebuild({"role": "developer", "content": "Be brief."}, {"role": "user", "content": "hi"}) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
    ]


def test_leading_system_messages_become_one_and_later_ones_stay() -> None:
    found = rebuild(
        {"role": "system", "content": "a"},
        {"role": "developer", "content": [{"type": "text", "text": "b"}]},
        {"role": "system", "content": ""},
        {"role": "user", "content": "hi"},
        {"role": "developer", "content": "later"},
    )
    assert found == [
        {"role": "system", "content": "a\n\nb"},
        {"role": "user", "content": "hi"},
        {"role": "system", "content": "later"},
    ]


def test_a_conversation_of_system_messages_only() -> None:
    assert rebuild({"role": "system", "content": "a"}) == [{"role": "system", "content": "a"}]


def test_an_invented_role_is_named() -> None:
    code, param, message = refused({"role": "user", "content": "x"}, {"role": "wizard", "content": "x"})
    assert (code, param) == ("invalid_request", "messages[1].role")
    assert "wizard" in message


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a", "a"),
        ("", ""),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "a"}], "a"),
        ([{"type": "text", "text": 'q"\\'}, {"type": "text", "text": "ü\n"}], 'q"\\\nü\n'),
    ],
)
def test_content_as_text_parts_or_null(role: str, content: object, text: str) -> None:
    assert rebuild({"role": role, "content": content})[0]["content"] == text


def test_content_may_be_absent() -> None:
    assert rebuild({"role": "assistant"}) == [{"role": "assistant", "content": ""}]


def test_tool_calls_and_results_are_kept_and_extras_dropped() -> None:
    found = rebuild(
        {
            "role": "user",
            "content": "x",
            "id": 3,
            "opts": {},
            "name": 7,
            "cache_control": {"type": "ephemeral"},
        },
        {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "ok"},
        {"role": "function", "name": "f", "content": "ok"},
    )
    assert found == [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [CALL]},
        {"role": "tool", "content": "ok", "tool_call_id": "c1", "name": "f"},
        {"role": "tool", "content": "ok", "name": "f"},
    ]


def test_earlier_arguments_that_are_no_json_are_named() -> None:
    broken = {**CALL, "function": {"name": "f", "arguments": "{x"}}
    code, param, _ = refused(
        {"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [CALL, broken]}
    )
    assert (code, param) == ("invalid_request", "messages[1].tool_calls[1].function.arguments")


def test_empty_arguments_are_no_arguments() -> None:
    empty = {**CALL, "function": {"name": "f", "arguments": ""}}
    found = rebuild({"role": "assistant", "tool_calls": [empty]}, {"role": "tool", "content": "x"})
    assert found[0]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_calls_without_results_are_named() -> None:
    code, param, _ = refused({"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [CALL]})
    assert (code, param) == ("invalid_request", "messages[1].tool_calls")
    assert rebuild({"role": "assistant", "content": "a", "tool_calls": []})


def conversation(*messages: object, **more: Any) -> Any:
    return rebuild_messages(Raw(json.dumps(messages).encode()), **more)


def test_system_texts_before_and_behind_the_clients_own() -> None:
    user = {"role": "user", "content": "x"}
    system = Raw(json.dumps([{"type": "text", "text": "a", "cache_control": {}}]).encode())
    found = conversation({"role": "developer", "content": "b"}, user, system=system, addition=b'"c"')
    assert json.loads(found.body) == [{"role": "system", "content": "a\n\nb\n\nc"}, user]
    assert json.loads(conversation(user, addition=b'"c"').body) == [{"role": "system", "content": "c"}, user]
    with pytest.raises(PeerError) as caught:
        conversation(user, system=Raw(b"3"))
    assert caught.value.fault.param == "system"


def test_what_is_told_of_a_conversation() -> None:
    user, answer = {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}
    called = {"role": "assistant", "tool_calls": [CALL]}
    assert not conversation(user, answer, user).with_calls
    assert conversation(user, called, user).with_calls
    assert conversation(user, {"role": "function", "content": "1"}).with_calls
    assert conversation(user, answer).begun_at == "messages[1]"
    assert conversation(user, answer, user).begun_at is None


@pytest.mark.parametrize(
    ("message", "code", "param"),
    [
        ({"content": "x"}, "invalid_request", "messages[0].role"),
        ({"role": None}, "invalid_request", "messages[0].role"),
        ({"role": "user", "content": 3}, "invalid_request", "messages[0].content"),
        ({"role": "user", "content": {"type": "text"}}, "invalid_request", "messages[0].content"),
        ({"role": "user", "content": [3]}, "invalid_request", "messages[0].content[0]"),
        ({"role": "user", "content": [{"text": "x"}]}, "invalid_request", "messages[0].content[0].type"),
        (
            {"role": "user", "content": [{"type": "text", "text": 1}]},
            "invalid_request",
            "messages[0].content[0].text",
        ),
        ({"role": "user", "content": [{"type": "input_audio"}]}, "unsupported", "messages[0].content[0]"),
        ({"role": "assistant", "tool_calls": [{}]}, "invalid_request", "messages[0].tool_calls[0].function"),
        ({"role": "assistant", "function_call": {"name": "f"}}, "unsupported", "messages[0].function_call"),
        ({"role": "tool", "tool_call_id": 4}, "invalid_request", "messages[0].tool_call_id"),
        (3, "invalid_request", "messages[0]"),
    ],
)
def test_what_is_wrong_is_named(message: object, code: str, param: str) -> None:
    assert refused(message)[:2] == (code, param)


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/x.png", "file:///etc/passwd", "data:text/html;base64,AA", ""]
)
def test_an_engine_is_never_told_to_fetch_an_image(url: str) -> None:
    part = {"type": "image_url", "image_url": {"url": url}}
    assert refused({"role": "user", "content": [part]})[:2] == (
        "unsupported",
        "messages[0].content[0].image_url",
    )


def test_inline_images_are_kept_and_noticed() -> None:
    url = "data:image/png;base64,AAAA"
    parts = [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": url, "detail": "low"}}]
    found = rebuild_messages(Raw(json.dumps([{"role": "user", "content": parts}]).encode()))
    assert found.image_at == "messages[0].content[1]"
    assert json.loads(found.body)[0]["content"][1] == {"type": "image_url", "image_url": {"url": url}}


def test_too_many_messages() -> None:
    many = [{"role": "user", "content": "x" * 40}] * (MAX_MESSAGES + 1)
    assert refused(*many)[:2] == ("invalid_request", "messages")
    # Counted before anything is decoded: the number at the end is never reached.
    assert refused(*many, 3)[:2] == ("invalid_request", "messages")
    assert refused(*[{"role": "user"}] * (MAX_MESSAGES + 1))[:2] == ("invalid_request", "messages")


ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(ROLES, st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=6), st.booleans()
)
def test_text_arrives_as_it_was_sent(turns: list[tuple[str, list[str]]], ascii_only: bool) -> None:
    sent = [{"role": r, "content": [{"type": "text", "text": t} for t in parts]} for r, parts in turns]
    raw = json.dumps(sent, ensure_ascii=ascii_only).encode()
    found = json.loads(rebuild_messages(Raw(raw)).body)
    lead = 0
    while lead < len(turns) and turns[lead][0] in ("system", "developer"):
        lead += 1
    joined = ["\n".join(t for t in parts if t) if len(parts) > 1 else parts[0] for _, parts in turns]
    expected = joined[lead:]
    if lead:
        expected.insert(0, "\n\n".join(t for t in joined[:lead] if t))
    assert [m["content"] for m in found] == expected
    assert all(m["role"] != "developer" for m in found)

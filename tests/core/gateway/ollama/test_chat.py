"""/api/chat, from a client's bytes to what an engine is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.chat import chat_plan as openai_chat_plan
from relaydesk.core.gateway.ollama.chat import chat_plan
from relaydesk.core.gateway.output import Identity, Spent
from relaydesk.core.gateway.usage import total_usage
from relaydesk.core.gateway.work import Capabilities, Plan
from tests.core.gateway.ollama.test_messages import PICTURE, call

USER = {"role": "user", "content": "hi"}
ALL = Capabilities(tools=True, images=True, thinking=True)
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def ask(**fields: Any) -> Plan:
    return chat_plan(json.dumps({"messages": [USER], **fields}).encode())


def refused(**fields: Any) -> tuple[str, str | None]:
    with pytest.raises(PeerError) as caught:
        ask(**fields)
    return caught.value.fault.code, caught.value.fault.param


def engine(plan: Plan) -> dict[str, Any]:
    body = plan.work.body(0, alias="m", slot=1, cache_prompt=True, extensions=True)
    found: dict[str, Any] = json.loads(body)
    return found


def test_the_engine_is_asked_what_openais_clients_would_ask() -> None:
    ours = ask(
        model="m",
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "?", "images": [PICTURE]},
            {
                "role": "assistant",
                "content": "",
                "thinking": "hm",
                "tool_calls": [call("f", {"x": 1}, id="c")],
            },
            {"role": "tool", "content": "2", "tool_name": "f", "tool_call_id": "c"},
        ],
        options={"temperature": 0, "seed": 3, "num_predict": 5, "top_k": 2, "stop": "z"},
        tools=TOOLS,
        think="low",
        logprobs=True,
        top_logprobs=2,
    )
    url = f"data:image/png;base64,{PICTURE}"
    theirs = openai_chat_plan(
        json.dumps(
            {
                "model": "m",
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "?"},
                            {"type": "image_url", "image_url": {"url": url}},
                        ],
                    },
                    {
                        "role": "assistant",
                        "content": "",
                        "reasoning_content": "hm",
                        "tool_calls": [
                            {
                                "id": "c",
                                "type": "function",
                                "function": {"name": "f", "arguments": '{"x": 1}'},
                            }
                        ],
                    },
                    {"role": "tool", "content": "2", "tool_call_id": "c", "name": "f"},
                ],
                "temperature": 0,
                "seed": 3,
                "max_tokens": 5,
                "top_k": 2,
                "stop": ["z"],
                "tools": TOOLS,
                "chat_template_kwargs": {"enable_thinking": True, "reasoning_effort": "low"},
                "logprobs": True,
                "top_logprobs": 2,
            }
        ).encode()
    )
    assert engine(ours) == engine(theirs)
    assert ours.work.fitted(ALL) is ours.work
    assert (ours.work.model, ours.work.choices, ours.unload) == ("m", 1, False)


def test_everything_absent_null_or_unknown_is_a_plain_streamed_chat() -> None:
    plain = engine(ask())
    names = ["model", "tools", "format", "options", "keep_alive", "think", "logprobs", "top_logprobs"]
    again = ask(**dict.fromkeys([*names, "stream", "truncate", "shift"]), foo=1, type="x")
    assert engine(again) == plain
    assert again.work.stream and again.keep_alive_s is None
    assert not ask(stream=False).work.stream
    assert engine(ask(truncate=True, shift=False, format="")) == plain


def test_format_json_and_thinking_switched_off() -> None:
    assert engine(ask(format="json"))["response_format"] == {"type": "json_object"}
    assert engine(ask(think=False))["chat_template_kwargs"] == {"enable_thinking": False}
    assert engine(ask(think=True))["chat_template_kwargs"] == {"enable_thinking": True}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "xml"),
        ("format", 3),
        ("format", []),
        ("think", "very"),
        ("think", ""),
        ("think", 3),
        ("keep_alive", "soon"),
        ("keep_alive", []),
        ("stream", "no"),
        ("options", []),
        ("logprobs", 1),
        ("top_logprobs", 21),
        ("top_logprobs", 2),
        ("model", 3),
        ("messages", {}),
        ("tools", {}),
        ("truncate", "x"),
    ],
)
def test_a_wrong_value_is_a_400_that_names_its_field(field: str, value: object) -> None:
    assert refused(**{field: value}) == ("invalid_request", field)


def test_fields_deep_inside_are_named_as_the_client_wrote_them() -> None:
    assert refused(messages=[USER, {"role": "robot"}]) == ("invalid_request", "messages[1].role")
    bad = {"role": "assistant", "tool_calls": [call("f", '{"x"')]}
    assert refused(messages=[USER, bad]) == (
        "invalid_request",
        "messages[1].tool_calls[0].function.arguments",
    )
    assert refused(tools=[{"function": {"name": ""}}]) == ("invalid_request", "tools[0].function.name")
    deep: Any = {}
    for _ in range(70):
        deep = {"properties": deep}
    assert refused(format=deep) == ("invalid_json", "format")
    assert refused(messages=[{"role": "assistant", "content": "", "images": [PICTURE]}]) == (
        "unsupported",
        "messages[0].images[0]",
    )


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": TOOLS}, "tools"),
        ({"messages": [{**USER, "images": [PICTURE]}]}, "messages[0].images[0]"),
        ({"think": True, "model": "m"}, "think"),
        ({"think": "high"}, "think"),
    ],
)
def test_what_the_model_cannot_do_is_named(fields: dict[str, Any], param: str) -> None:
    work = ask(**fields).work
    with pytest.raises(PeerError) as caught:
        work.fitted(Capabilities())
    assert (caught.value.fault.code, caught.value.fault.param) == ("unsupported", param)
    assert work.fitted(ALL) is work


def test_thinking_that_was_declined_needs_no_thinking_model() -> None:
    ask(think=False).work.fitted(Capabilities())
    with pytest.raises(PeerError, match=r'^"qwen" does not support thinking$'):
        ask(think=True, model="qwen").work.fitted(Capabilities())


@pytest.mark.parametrize("fields", [{"messages": []}, {"messages": None}])
@pytest.mark.parametrize(
    ("keep_alive", "unload", "kept"),
    [(None, False, None), ("5m", False, 300), (0, True, 0), ("0s", True, 0), (-1, False, -1)],
)
def test_without_messages_the_model_is_loaded_or_unloaded(
    fields: dict[str, Any], keep_alive: Any, unload: bool, kept: int | None
) -> None:
    found = ask(**fields, keep_alive=keep_alive, model="m")
    assert (found.unload, found.keep_alive_s) == (unload, kept)
    work = found.work.fitted(Capabilities())
    assert (work.choices, work.model, work.stream) == (0, "m", True)
    last = json.loads(found.output(Identity("", "m", 0)).close(total_usage([]), Spent()))
    assert last["done_reason"] == ("unload" if unload else "load")
    assert last["message"] == {"role": "assistant", "content": ""}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_json"),
        (b" \n", "invalid_json"),
        (b"{", "invalid_json"),
        (b"[]", "invalid_request"),
        (b'{"messages":[{"role":"user","content":"\xff"}]}', "invalid_json"),
        (b'{"messages":[{"role":"user","content":"\\ud800"}]}', "invalid_json"),
        (b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "invalid_request"),
        (b'{"messages":[{"role":"","content":' + b"[" * 100_000, "invalid_json"),
        (b'{"messages":[' + b'{"role":"user"},' * 9000 + b'{"role":"user"}]}', "invalid_request"),
        (b'{"messages":[' + b"{}," * 1_000_000 + b"{}]}", "invalid_request"),
        (b'{"options":{"seed":' + b"9" * 5000 + b"}}", "invalid_request"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} bytes",
)
def test_hostile_bodies(body: bytes, code: str) -> None:
    with pytest.raises(PeerError) as caught:
        chat_plan(body)
    assert caught.value.fault.code == code


def test_a_long_prompt_is_passed_as_it_is() -> None:
    text = 'Say "more" \\ é ' * 50_000
    assert engine(ask(messages=[{"role": "user", "content": text}]))["messages"][0]["content"] == text


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-9, 99),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(["", "json", "user", "tool", "f", "5m", "low", PICTURE]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "content",
                    "images",
                    "tool_calls",
                    "function",
                    "name",
                    "arguments",
                    "thinking",
                    "type",
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=120)
@given(
    st.dictionaries(
        st.sampled_from(
            ["model", "messages", "stream", "format", "options", "keep_alive", "think", "tools", "logprobs"]
        ),
        VALUES,
    )
)
def test_any_body_is_understood_or_refused_by_name(fields: dict[str, Any]) -> None:
    try:
        found = chat_plan(json.dumps(fields).encode())
    except PeerError as error:
        param = error.fault.param
        assert param is not None
        assert param.partition(".")[0].partition("[")[0] in fields
        return
    if found.work.choices:
        engine(found)

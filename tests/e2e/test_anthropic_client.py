"""The Anthropic client for Python, unmodified, against a hub with a real engine."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import anthropic
import httpx2 as httpx
import pytest
from anthropic.types import Message, RawMessageStreamEvent
from pydantic import BaseModel, TypeAdapter

from tests.clients.rig import ClientRig

pytestmark = pytest.mark.engine

WEATHER: Any = {
    "name": "weather",
    "input_schema": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
}
WEATHER_ASKED: Any = [{"role": "user", "content": "What is the weather in Oslo?"}]
EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)


@pytest.fixture(scope="module")
def api(rig: ClientRig) -> Iterator[anthropic.Anthropic]:
    with client(rig, rig.hub.key) as running:
        yield running


def client(rig: ClientRig, key: str) -> anthropic.Anthropic:
    http_client = httpx.Client(verify=rig.hub.tls_context(), trust_env=False)
    return anthropic.Anthropic(base_url=rig.hub.url, api_key=key, http_client=http_client, max_retries=0)


def ask(**fields: Any) -> dict[str, Any]:
    return {
        "model": "tiny",
        "system": "Answer in one word.",
        "messages": [{"role": "user", "content": "Name a colour."}],
        "max_tokens": 6,
        "extra_body": {"temperature": 0},
        **fields,
    }


def scripted(text: str, **fields: Any) -> dict[str, Any]:
    return {
        "model": "scripted",
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 50,
        **fields,
    }


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def test_answers_and_streams_the_same_text(api: anthropic.Anthropic) -> None:
    whole = api.messages.create(**ask())
    Message.model_validate(whole.to_dict())
    events = list(api.messages.create(**ask(), stream=True))
    for event in events:
        EVENT.validate_python(event.to_dict())
    text = "".join(event.delta.text for event in events if event.type == "content_block_delta")
    assert text == text_of(whole)
    assert text
    assert (whole.model, whole.stop_reason, whole.usage.output_tokens) == ("tiny", "max_tokens", 6)
    assert [event.type for event in (events[0], events[-1])] == ["message_start", "message_stop"]


def test_the_stream_helper_and_its_final_message(api: anthropic.Anthropic) -> None:
    with api.messages.stream(**scripted("[comments]")) as stream:
        assert list(stream.text_stream) == ["Hello", " there"]
        final = stream.get_final_message()
    assert (text_of(final), final.stop_reason) == ("Hello there", "end_turn")
    assert (final.usage.input_tokens, final.usage.output_tokens) == (5, 2)


def test_silence_is_filled_with_what_its_parser_skips(api: anthropic.Anthropic) -> None:
    with api.messages.stream(**scripted("[slow]")) as stream:
        assert text_of(stream.get_final_message()) == "so late"


def test_tokens_are_counted_before_as_after(api: anthropic.Anthropic) -> None:
    asked = ask()
    count = api.messages.count_tokens(**{name: asked[name] for name in ("model", "system", "messages")})
    usage = api.messages.create(**asked).usage
    assert count.input_tokens == usage.input_tokens + (usage.cache_read_input_tokens or 0)
    long = api.messages.count_tokens(model="tiny", messages=[{"role": "user", "content": "word " * 2000}])
    assert long.input_tokens > 2000
    with pytest.raises(anthropic.BadRequestError, match="does not count tokens"):
        api.messages.count_tokens(model="scripted", messages=[{"role": "user", "content": "Hi"}])


def test_an_answer_that_has_begun_goes_on(api: anthropic.Anthropic) -> None:
    """The last message may be the assistant's: what comes is only what follows it."""
    messages: list[Any] = [
        {"role": "user", "content": "Count from 1 to 6, with commas."},
        {"role": "assistant", "content": "1, 2, 3,"},
    ]
    answer = api.messages.create(**ask(system="You count.", messages=messages))
    assert text_of(answer).strip().startswith("4")


@pytest.mark.parametrize("stream", [False, True])
def test_the_stop_sequence_that_ended_an_answer_is_named(
    rig: ClientRig, api: anthropic.Anthropic, stream: bool
) -> None:
    messages: list[Any] = [
        {"role": "user", "content": "Count from 1 to 9, with commas."},
        {"role": "assistant", "content": "1, 2, 3,"},
    ]
    asked = ask(system="You count.", messages=messages, max_tokens=300, stop_sequences=["zzz", "5, 6"])
    if stream:
        with api.messages.stream(**asked) as running:
            answer: Any = running.get_final_message()
    else:
        answer = api.messages.create(**asked)
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", "5, 6")
    assert text_of(answer).strip() == "4,"
    count = api.messages.count_tokens(model="tiny", system="You count.", messages=messages)
    usage = answer.usage
    assert usage.input_tokens + (usage.cache_read_input_tokens or 0) == count.input_tokens
    # The engine goes on where it was not told to stop: it is left at once.
    assert usage.output_tokens < 20
    rig.hub.wait_for(lambda view: not view.requests.value.in_flight, 5)


def test_a_far_server_is_told_of_stop_sequences(rig: ClientRig, api: anthropic.Anthropic) -> None:
    answer = api.messages.create(**scripted("[hello]", stop_sequences=["zzz"]))
    assert (text_of(answer), answer.stop_reason, answer.stop_sequence) == ("Hello there", "end_turn", None)
    assert rig.server.bodies[-1]["stop"] == ["zzz"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "weather"}])
def test_a_forced_call_of_a_model_that_knows_no_tools(
    api: anthropic.Anthropic, choice: Any, stream: bool
) -> None:
    asked = ask(tools=[WEATHER], tool_choice=choice, max_tokens=100, messages=WEATHER_ASKED)
    if stream:
        with api.messages.stream(**asked) as running:
            answer: Any = running.get_final_message()
    else:
        answer = api.messages.create(**asked)
    assert answer.stop_reason == "tool_use"
    (call,) = answer.content
    assert (call.type, call.name) == ("tool_use", "weather")
    assert set(call.input) == {"town"}


def test_a_round_of_tools(api: anthropic.Anthropic) -> None:
    """The whole content goes back as the assistant's, as the client's documentation has it."""
    asked = scripted("[two-calls]", tools=[WEATHER])
    with api.messages.stream(**asked) as stream:
        final = stream.get_final_message()
    assert final.stop_reason == "tool_use"
    calls = [block for block in final.content if block.type == "tool_use"]
    assert [(call.id, call.name, call.input) for call in calls] == [
        ("call_a", "weather", {"town": "Oslo"}),
        ("call_b", "weather", {"town": "Rome"}),
    ]
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": f"sun {number}"}
        for number, call in enumerate(calls)
    ]
    asked["messages"] += [
        {"role": "assistant", "content": [block.to_dict() for block in final.content]},
        {"role": "user", "content": results},
    ]
    assert text_of(api.messages.create(**asked)) == "Results: sun 0, sun 1"


class Shade(Enum):
    RED = "red"
    BLUE = "blue"


class Answer(BaseModel):
    colour: Shade
    other: Shade


def test_parse_gives_an_object_of_the_schemas_class(api: anthropic.Anthropic) -> None:
    answer = api.messages.parse(**ask(max_tokens=60), output_format=Answer)
    assert isinstance(answer.parsed_output, Answer)


@pytest.mark.parametrize("scenario", ["breaks", "fails"])
def test_what_fails_behind_the_headers_is_raised(api: anthropic.Anthropic, scenario: str) -> None:
    seen: list[str] = []
    failing = api.messages.stream(**scripted(f"[{scenario}]"))
    with failing as stream, pytest.raises(anthropic.APIStatusError) as caught:
        seen.extend(stream.text_stream)
    assert "".join(seen) == "Hello"
    assert caught.value.body["error"]["type"] == "api_error"  # type: ignore[index]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"extra_body": {"temperature": 2}}, "temperature is 2, allowed is 0 to 1"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "document"}]}]}, "messages[0].content[0]"),
    ],
)
def test_a_refusal_names_the_field(api: anthropic.Anthropic, fields: Any, says: str) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        api.messages.create(**ask(**fields))
    body: Any = caught.value.body
    assert body["error"]["type"] == "invalid_request_error"
    assert says in body["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long(api: anthropic.Anthropic, stream: bool) -> None:
    messages = [{"role": "user", "content": "word " * 2000}]
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        api.messages.create(**ask(messages=messages), stream=stream)


def test_other_errors_are_of_their_classes(rig: ClientRig, api: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError):
        api.messages.create(**ask(model="nope"))
    with pytest.raises(anthropic.InternalServerError, match="needs about"):
        api.messages.create(**ask(model="big"))
    with client(rig, "wrong") as stranger, pytest.raises(anthropic.AuthenticationError):
        stranger.messages.create(**ask())

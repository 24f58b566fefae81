"""``client.responses`` of the OpenAI client for Python, unmodified, against a hub with a real engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import Enum
from typing import Any

import httpx2 as httpx
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from tests.clients.rig import ClientRig

pytestmark = pytest.mark.engine

WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    "strict": False,
}
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


@pytest.fixture(scope="module")
def api(rig: ClientRig) -> Iterator[openai.OpenAI]:
    with client(rig, rig.hub.key) as running:
        yield running


def client(rig: ClientRig, key: str) -> openai.OpenAI:
    http_client = httpx.Client(verify=rig.hub.tls_context(), trust_env=False)
    return openai.OpenAI(base_url=f"{rig.hub.url}/v1", api_key=key, http_client=http_client, max_retries=0)


def ask(**fields: Any) -> dict[str, Any]:
    return {
        "model": "tiny",
        "input": "Name a colour.",
        "instructions": "Answer in one word.",
        "max_output_tokens": 6,
        "temperature": 0,
        **fields,
    }


def scripted(text: str, **fields: Any) -> dict[str, Any]:
    return {"model": "scripted", "input": text, **fields}


def checked(stream: Any) -> list[Any]:
    """A stream's events, each of them as strictly as the client's own types say."""
    events = list(stream)
    for event in events:
        EVENT.validate_python(event.to_dict(warnings=False))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    return events


def test_answers_and_streams_what_a_chat_says(api: openai.OpenAI) -> None:
    chat = api.chat.completions.create(
        model="tiny",
        messages=[
            {"role": "system", "content": "Answer in one word."},
            {"role": "user", "content": "Name a colour."},
        ],
        max_tokens=6,
        temperature=0,
    )
    whole = api.responses.create(**ask())
    Response.model_validate(whole.to_dict())
    events = checked(api.responses.create(**ask(stream=True)))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == whole.output_text == chat.choices[0].message.content
    assert text
    assert (whole.status, whole.incomplete_details and whole.incomplete_details.reason) == (
        "incomplete",
        "max_output_tokens",
    )
    assert events[-1].type == "response.incomplete"
    assert events[-1].response.output_text == text
    assert chat.usage is not None
    assert whole.usage is not None
    assert whole.usage.input_tokens == chat.usage.prompt_tokens
    assert whole.usage.output_tokens == 6
    assert whole.usage.total_tokens == whole.usage.input_tokens + 6
    assert (whole.model, whole.store if hasattr(whole, "store") else False) == ("tiny", False)


def test_the_stream_helper_and_its_final_response(api: openai.OpenAI) -> None:
    with api.responses.stream(**scripted("[comments]", metadata={"a": "b"}, store=True)) as stream:
        events = checked(stream)
        final = stream.get_final_response()
    assert [event.type.removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert final.output_text == "Hello there"
    assert final.metadata == {"a": "b"}


def test_a_round_of_tools(api: openai.OpenAI) -> None:
    """The whole output goes back as input, as the client's documentation has it."""
    conversation: list[Any] = [{"role": "user", "content": "[two-calls]"}]
    with api.responses.stream(model="scripted", input=conversation, tools=[WEATHER]) as stream:
        events = checked(stream)
        final = stream.get_final_response()
    done = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert [(event.output_index, event.arguments) for event in done] == [
        (0, '{"town":"Oslo"}'),
        (1, '{"town":"Rome"}'),
    ]
    calls = [item for item in final.output if item.type == "function_call"]
    assert [(call.call_id, call.name) for call in calls] == [("call_a", "weather"), ("call_b", "weather")]
    assert final.usage is not None
    assert final.usage.total_tokens == 14
    conversation += [item.to_dict() for item in final.output]
    conversation += [
        {"type": "function_call_output", "call_id": call.call_id, "output": f"sun {number}"}
        for number, call in enumerate(calls)
    ]
    answer = api.responses.create(model="scripted", input=conversation, tools=[WEATHER])
    assert answer.output_text == "Results: sun 0, sun 1"


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "weather"}])
def test_a_forced_call_of_a_model_that_knows_no_tools(api: openai.OpenAI, choice: Any) -> None:
    asked = ask(
        input="What is the weather in Oslo?", tools=[WEATHER], tool_choice=choice, max_output_tokens=100
    )
    whole = api.responses.create(**asked)
    events = checked(api.responses.create(**asked, stream=True))
    for answer in (whole, events[-1].response):
        assert answer.status == "completed"
        (call,) = answer.output
        assert (call.type, call.name) == ("function_call", "weather")
        assert set(json.loads(call.arguments)) == {"town"}
    done = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert [event.arguments for event in done] == [whole.output[0].arguments]


class Shade(Enum):
    RED = "red"
    BLUE = "blue"


class Answer(BaseModel):
    colour: Shade
    other: Shade


def test_parse_gives_an_object_of_the_schemas_class(api: openai.OpenAI) -> None:
    answer = api.responses.parse(**ask(max_output_tokens=60), text_format=Answer)
    assert isinstance(answer.output_parsed, Answer)
    assert answer.text is not None
    assert answer.text.format is not None
    assert answer.text.format.type == "json_schema"


def test_logprobs_where_they_are_asked_for(api: openai.OpenAI) -> None:
    asked = ask(include=["message.output_text.logprobs"], top_logprobs=2)
    whole = api.responses.create(**asked)
    Response.model_validate(whole.to_dict())
    (part,) = whole.output[-1].content
    assert len(part.logprobs) == 6
    assert all(len(each.top_logprobs) == 2 for each in part.logprobs)
    events = checked(api.responses.create(**asked, stream=True))
    told = [each for e in events if e.type == "response.output_text.delta" for each in e.logprobs]
    assert [each.token for each in told] == [each.token for each in part.logprobs]


@pytest.mark.parametrize("scenario", ["breaks", "fails"])
def test_what_fails_behind_the_headers_is_raised(api: openai.OpenAI, scenario: str) -> None:
    seen: list[Any] = []
    stream: Any = api.responses.create(**scripted(f"[{scenario}]"), stream=True)
    with pytest.raises(openai.APIError) as caught:
        seen.extend(stream)
    assert "".join(event.delta for event in seen if event.type == "response.output_text.delta") == "Hello"
    assert seen[-1].type == "response.failed"
    assert caught.value.code == seen[-1].response.error.code == "engine_failed"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
            "input[0].content[0]",
        ),
        ({"max_output_tokens": 0}, "max_output_tokens"),
    ],
)
def test_a_refusal_names_the_field(api: openai.OpenAI, fields: Any, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        api.responses.create(**ask(**fields))
    assert caught.value.param == param
    assert caught.value.request_id


@pytest.mark.parametrize("stream", [False, True])
def test_an_input_that_is_too_long(api: openai.OpenAI, stream: bool) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        api.responses.create(**ask(input="word " * 2000, stream=stream))
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "input")


def test_other_errors_are_of_their_classes(rig: ClientRig, api: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        api.responses.create(**ask(model="nope"))
    with pytest.raises(openai.NotFoundError, match="not kept"):
        api.responses.retrieve("resp_1")
    with pytest.raises(openai.NotFoundError, match="not kept"):
        api.responses.delete("resp_1")
    with pytest.raises(openai.InternalServerError) as caught:
        api.responses.create(**ask(model="big"))
    assert caught.value.code == "model_unavailable"
    with client(rig, "wrong") as stranger, pytest.raises(openai.AuthenticationError):
        stranger.responses.create(**ask())

"""Forced calls and schemas with a real model: what comes back validates, streamed and whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import jsonschema
import openai
import pytest

from tests.support.hub import Hub

pytestmark = pytest.mark.engine

# The way of Hermes, which many models were taught; the real model here knows no tools at all.
TEMPLATE = """\
{%- for tool in tools or [] %}{{ '<tool>' + (tool | tojson) + '</tool>' }}{%- endfor %}
{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- (call.function.arguments | tojson) + '}\\n</tool_call>' }}
{%- endfor %}{{ '<|im_end|>\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}
"""
WEATHER: dict[str, Any] = {
    "type": "object",
    "description": "Where and when",
    "properties": {
        "town": {"type": "string", "maxLength": 12, "description": "A town"},
        "day": {"$ref": "#/$defs/day"},
        "hours": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 23}, "maxItems": 2},
    },
    "required": ["town", "day"],
    "additionalProperties": False,
    "$defs": {
        "day": {"oneOf": [{"enum": ["today", "tomorrow"]}, {"type": "integer", "minimum": -3, "maximum": 9}]}
    },
}
PLACE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{2}-\\d{1,3}$"},
        "at": {"type": ["string", "null"], "format": "date"},
        "kind": {"const": 'a "b" \\ ü😊'},
    },
    "required": ["code", "at", "kind"],
}
SCHEMAS = {"weather": WEATHER, "place": PLACE, "now": {"type": "object", "properties": {}}}
TOOLS: Any = [
    {"type": "function", "function": {"name": name, "description": f"Finds the {name}", "parameters": schema}}
    for name, schema in SCHEMAS.items()
]


@pytest.fixture(scope="module")
def hub(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    template = tmp_path_factory.mktemp("template") / "hermes.jinja"
    template.write_text(TEMPLATE)
    with Hub() as running:
        running.add(smollm2)
        running.add(smollm2, name="hermes", template=str(template))
        for name in ("tiny", "hermes"):
            running.load(name)
        yield running


@pytest.fixture
def api(hub: Hub) -> Iterator[openai.OpenAI]:
    http_client = httpx.Client(trust_env=False)
    with openai.OpenAI(
        base_url=f"{hub.url}/v1", api_key=hub.key, http_client=http_client, max_retries=0
    ) as client:
        yield client


def named(name: str) -> Any:
    return {"type": "function", "function": {"name": name}}


def ask(model: str = "tiny", **fields: Any) -> Any:
    question = [{"role": "user", "content": "What is the weather in Rome tomorrow?"}]
    return {"model": model, "messages": question, "max_tokens": 100, "temperature": 0, "seed": 1, **fields}


def validated(call: Any) -> tuple[str, str]:
    assert (call.type, bool(call.id)) == ("function", True)
    jsonschema.Draft202012Validator(SCHEMAS[call.function.name]).validate(json.loads(call.function.arguments))
    return call.function.name, call.function.arguments


@pytest.mark.parametrize(
    ("model", "choice"),
    [
        pytest.param("hermes", "required", marks=pytest.mark.long),
        ("tiny", "required"),
        *(("tiny", named(name)) for name in SCHEMAS),
    ],
    ids=["template with tools", "required", *SCHEMAS],
)
def test_a_forced_call_validates_streamed_and_whole(api: openai.OpenAI, model: str, choice: Any) -> None:
    asked = ask(model, tools=TOOLS, tool_choice=choice)
    whole = api.chat.completions.create(**asked).choices[0]
    assert whole.finish_reason == "tool_calls" and whole.message.content is None
    (call,) = whole.message.tool_calls or []
    found = validated(call)
    if choice != "required":
        assert found[0] == choice["function"]["name"]
    with api.chat.completions.stream(**asked) as stream:
        pieces = [event for event in stream if event.type == "tool_calls.function.arguments.delta"]
        last = stream.get_final_completion().choices[0]
    (again,) = last.message.tool_calls or []
    assert (last.finish_reason, (again.function.name, again.function.arguments)) == ("tool_calls", found)
    assert "".join(event.arguments_delta for event in pieces) == found[1]
    assert len(pieces) > 1 or found[0] == "now"


@pytest.mark.long
def test_forced_calls_at_random_validate(api: openai.OpenAI) -> None:
    for seed in range(2):
        got = api.chat.completions.create(
            **ask(tools=TOOLS, tool_choice="required", temperature=1.5, seed=seed, n=2)
        )
        for choice in got.choices:
            (call,) = choice.message.tool_calls or []
            if choice.finish_reason == "tool_calls":
                validated(call)
            else:
                assert choice.finish_reason == "length"


def test_a_limit_cuts_a_call_and_says_so(api: openai.OpenAI) -> None:
    got = api.chat.completions.create(**ask(tools=TOOLS, tool_choice=named("place"), max_tokens=14))
    choice = got.choices[0]
    assert choice.finish_reason == "length" and not choice.message.content
    assert got.usage is not None and got.usage.completion_tokens == 14


@pytest.mark.parametrize("model", [pytest.param("tiny", marks=pytest.mark.long), "hermes"])
def test_the_way_round_a_call_and_its_result(api: openai.OpenAI, model: str) -> None:
    asked = ask(model, tools=TOOLS, tool_choice=named("weather"))
    message = api.chat.completions.create(**asked).choices[0].message
    (call,) = message.tool_calls or []
    result = {"role": "tool", "tool_call_id": call.id, "content": "Sunny, 31 degrees."}
    turns = [*asked["messages"], message.model_dump(exclude_none=True), result]
    answer = api.chat.completions.create(**ask(model, messages=turns, max_tokens=16))
    assert answer.choices[0].message.content
    # And round again.
    asked = ask(model, messages=turns, tools=TOOLS, tool_choice=named("place"))
    (call,) = api.chat.completions.create(**asked).choices[0].message.tool_calls or []
    validated(call)


def test_tools_that_may_be_called_break_nothing(api: openai.OpenAI) -> None:
    """What an engine would refuse or hang at is left out of tools that bind nobody (report B19)."""
    odd = {
        "type": "object",
        "properties": {
            "any": True,
            "me": {"$ref": "#"},
            "far": {"$ref": "https://example.com/x"},
            "word": {"type": "string", "pattern": "(?=a)b", "maxLength": 100_000},
            "]": {"not": {}},
        },
        "additionalProperties": True,
    }
    tools: Any = [{"type": "function", "function": {"name": "odd", "parameters": odd}}]
    answer = api.chat.completions.create(**ask("hermes", tools=tools, max_tokens=4))
    assert answer.choices[0].finish_reason == "length"


SHAPES: list[Any] = [
    WEATHER,
    PLACE,
    {"type": "integer", "maximum": -3},
    {"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "null"}], "minItems": 2, "items": False},
    {
        "allOf": [{"properties": {"a": {"type": "boolean"}}}, {"required": ["a", "b"]}],
        "properties": {"b": {"enum": [1.5, None]}},
    },
    {
        "anyOf": [
            {"type": "null"},
            {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]},
        ]
    },
]


@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_answers_validate(api: openai.OpenAI, number: int) -> None:
    schema = SHAPES[number]
    bound: Any = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
    got = api.chat.completions.create(**ask(response_format=bound, temperature=1.2))
    choice = got.choices[0]
    if choice.finish_reason == "stop":
        jsonschema.Draft202012Validator(schema).validate(json.loads(choice.message.content or ""))
    else:
        assert choice.finish_reason == "length"


def test_a_schema_that_would_hang_the_engine_is_refused(api: openai.OpenAI) -> None:
    backwards = {"type": "string", "minLength": 5, "maxLength": 3}
    bound: Any = {"type": "json_schema", "json_schema": {"name": "s", "schema": backwards}}
    with pytest.raises(openai.BadRequestError) as caught:
        api.chat.completions.create(**ask(response_format=bound))
    assert caught.value.param == "response_format.json_schema.schema.minLength"

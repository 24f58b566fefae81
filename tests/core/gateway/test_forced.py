"""What binds an answer to one call, and what the model is told of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.forced import forced_call
from relaydesk.core.gateway.tools import read_tools


def tool(name: str, parameters: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


def forced(*tools: Any) -> tuple[Any, str]:
    call = forced_call(read_tools(Raw(json.dumps(tools).encode())))
    bound = json.loads(call.format)
    assert bound["type"] == "json_schema"
    return bound["json_schema"]["schema"], json.loads(call.prompt)


def call_of(name: str, arguments: Any) -> Any:
    return {
        "type": "object",
        "properties": {"name": {"enum": [name]}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where"}},
    "required": ["city"],
}
BARE_CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_one_tool_is_one_call() -> None:
    schema, prompt = forced(tool("weather", CITY, description="Tells the weather"))
    assert schema == call_of("weather", BARE_CITY)
    assert "weather" in prompt and "Tells the weather" in prompt and "Where" in prompt
    assert "one of" not in prompt


def test_several_tools_are_alternatives_and_share_definitions() -> None:
    tree = {
        "$ref": "#/$defs/n",
        "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}},
    }
    schema, prompt = forced(tool("a", tree), tool("b", tree), tool("c"))
    calls = schema["anyOf"]
    assert [call["properties"]["name"]["enum"] for call in calls] == [["a"], ["b"], ["c"]]
    assert calls[0]["properties"]["arguments"] != calls[1]["properties"]["arguments"]
    assert calls[2]["properties"]["arguments"] == {"type": "object", "properties": {}, "required": []}
    assert len(schema["$defs"]) == 2
    assert "one of" in prompt


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"anyOf": [CITY, {"type": "object"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}},
        {"enum": [{"a": 1}]},
    ],
)
def test_arguments_are_an_object(parameters: Any) -> None:
    arguments = forced(tool("a", parameters))[0]["properties"]["arguments"]
    assert arguments != {}


@pytest.mark.parametrize(
    ("parameters", "code", "param"),
    [
        ({"type": "string"}, "invalid_request", ""),
        ({"anyOf": [CITY, {"type": "null"}]}, "invalid_request", ""),
        ({"enum": [{"a": 1}, 2]}, "invalid_request", ""),
        ({"type": 3}, "invalid_request", ".type"),
        (
            {"properties": {"x": {"type": "string", "pattern": "(?!a)"}}},
            "unsupported",
            ".properties.x.pattern",
        ),
    ],
)
def test_what_cannot_be_kept_to_is_named(parameters: Any, code: str, param: str) -> None:
    with pytest.raises(PeerError) as caught:
        forced(tool("a"), tool("b", parameters))
    assert (caught.value.fault.code, caught.value.fault.param) == (
        code,
        f"tools[1].function.parameters{param}",
    )

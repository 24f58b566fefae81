"""A forced tool call, for models and engines that know nothing of it.

No engine here keeps to ``tool_choice``, and many templates drop tools in silence. So the tools are told in a
system text, the answer is bound to the JSON of one call by a schema, which engines do keep to, and
`CallReader` turns it into a tool call on its way to the client. A forced answer is exactly one call, also
where several would be allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import encode, invalid
from relaydesk.core.gateway.response_format import json_format
from relaydesk.core.gateway.schema.keywords import Schema
from relaydesk.core.gateway.schema.shapes import Shapes
from relaydesk.core.gateway.tools import NO_PARAMETERS, Tool

_SHAPE: Final = '{"name": "<function>", "arguments": {<arguments>}}'


class ForcedCall(msgspec.Struct, frozen=True):
    """``names`` may be called.

    ``format`` binds an engine to one call; ``prompt`` is the system text, a JSON string.
    """

    names: tuple[str, ...]
    format: bytes
    prompt: bytes


def forced_call(tools: Sequence[Tool]) -> ForcedCall:
    """A call to one of ``tools``, of which there is at least one.

    Raises `PeerError` naming the keyword of a tool's parameters that no engine here would keep to.
    """
    shapes = Shapes()
    calls = [_call(tool, shapes) for tool in tools]
    root: Schema = calls[0] if len(calls) == 1 else {"anyOf": calls}
    names = tuple(tool.name for tool in tools)
    return ForcedCall(names, json_format("call", shapes.document(root)), encode(_prompt(tools)))


def _call(tool: Tool, shapes: Shapes) -> Schema:
    arguments = shapes.add(tool.parameters or NO_PARAMETERS, tool.at)
    if not arguments:
        arguments = {"type": "object"}
    if not _is_object(arguments, shapes.defs):
        raise invalid(tool.at, f"{tool.at} must describe an object, as arguments are one")
    return {
        "type": "object",
        "properties": {"name": {"enum": [tool.name]}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _is_object(shape: Schema, defs: Mapping[str, Schema]) -> bool:
    """Whether only objects fit. References lead somewhere: `Shapes` has seen to that."""
    if "$ref" in shape:
        return _is_object(defs[shape["$ref"].rpartition("/")[2]], defs)
    if "anyOf" in shape:
        return all(_is_object(each, defs) for each in shape["anyOf"])
    if "enum" in shape:
        return all(isinstance(value, dict) for value in shape["enum"])
    return shape.get("type") == "object"


def _prompt(tools: Sequence[Tool]) -> str:
    one = len(tools) == 1
    lines = ["Call this function:" if one else "Call one of these functions:", ""]
    for tool in tools:
        entry: dict[str, object] = {"name": tool.name}
        if tool.description:
            entry["description"] = tool.description
        if tool.parameters:
            entry["parameters"] = Raw(tool.parameters)
        lines.append(encode(entry).decode())
    lines += ["", "Answer with the call alone, as JSON:", _SHAPE]
    return "\n".join(lines)

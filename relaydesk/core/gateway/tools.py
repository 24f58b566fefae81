"""``tools`` and ``tool_choice``: checked, and made into what is offered and whether it must be taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import decode, decoder, encode, invalid, present, unsupported
from relaydesk.core.gateway.schema.relaxed import relaxed_schema
from relaydesk.core.text import safe_text

MAX_TOOLS: Final = 512
MAX_NAME: Final = 128
# Each schema is read whole on the loop.
MAX_BYTES: Final = 512 * 1024
NO_PARAMETERS: Final = b'{"type":"object","properties":{}}'


class Tool(msgspec.Struct, frozen=True):
    """A function that may be called. ``parameters`` is its schema as it came, which stands at ``at``."""

    name: str
    description: str | None
    parameters: bytes
    at: str


class Offer(msgspec.Struct, frozen=True):
    """The tools a model may call. ``forced``: its answer must be a call."""

    tools: tuple[Tool, ...] = ()
    forced: bool = False


class _Function(msgspec.Struct):
    name: str
    description: str | None = None
    parameters: Raw = Raw()


class _Tool(msgspec.Struct):
    """A tool in OpenAI's form, or flat as OpenAI's newer route and Anthropic have it."""

    type: str | None = None
    function: Raw = Raw()
    name: str | None = None
    description: str | None = None
    parameters: Raw = Raw()
    input_schema: Raw = Raw()


class _Named(msgspec.Struct):
    name: str


class _Choice(msgspec.Struct):
    type: str
    function: Raw = Raw()
    name: str | None = None
    allowed_tools: Raw = Raw()


class _Allowed(msgspec.Struct):
    mode: str
    tools: list[_Choice]


_TOOLS: Final = decoder(list[_Tool])
_FUNCTION: Final = decoder(_Function)
_NAMED: Final = decoder(_Named)
_CHOICE: Final = msgspec.json.Decoder(str | _Choice)
_ALLOWED: Final = decoder(_Allowed)
# Both dialects' words for what a model does with its tools.
_MODES: Final = {"auto": "auto", "none": "none", "required": "required", "any": "required"}


def read_tools(raw: Raw) -> tuple[Tool, ...]:
    """``tools``, none where they are absent. Raises `PeerError` whose ``param`` names the tool."""
    data = present(raw)
    if not data:
        return ()
    tools = decode(_TOOLS, data, "tools")
    if len(tools) > MAX_TOOLS:
        raise invalid("tools", f"tools has {len(tools)} entries, allowed is {MAX_TOOLS}")
    found = tuple(_read(tool, f"tools[{number}]") for number, tool in enumerate(tools))
    size = sum(len(tool.parameters) for tool in found)
    if size > MAX_BYTES:
        raise invalid("tools", f"tools has {size} bytes of schemas, allowed is {MAX_BYTES}")
    return found


def tool_offer(raw: Raw, tools: tuple[Tool, ...]) -> Offer:
    """What ``tool_choice`` leaves of ``tools``. Raises `PeerError`."""
    data = present(raw)
    choice = decode(_CHOICE, data, "tool_choice") if data else "auto"
    if isinstance(choice, str):
        # "any" is Anthropic's, and stands in an object there.
        mode = "" if choice == "any" else choice
        return _offer(mode, tools)
    if choice.type in ("function", "tool"):
        name = _named(choice, "tool_choice")
        return _offer("required", _allowed([(name, "tool_choice")], tools))
    if choice.type == "allowed_tools" and choice.allowed_tools:
        given = decode(_ALLOWED, choice.allowed_tools, "tool_choice.allowed_tools")
        at = "tool_choice.allowed_tools.tools"
        names = [(_named(each, f"{at}[{number}]"), at) for number, each in enumerate(given.tools)]
        if given.mode not in ("auto", "required"):
            raise invalid(
                "tool_choice.allowed_tools.mode",
                "tool_choice.allowed_tools.mode must be auto or required",
            )
        return _offer(given.mode, _allowed(names, tools))
    return _offer(choice.type, tools)


def offered(tools: Sequence[Tool]) -> bytes:
    """``tools`` as JSON for an engine, whose model may call them or not; empty where there are none.

    Raises `PeerError` ``invalid_request`` for parameters that are no schema.
    """
    rebuilt = []
    for tool in tools:
        entry: dict[str, object] = {"name": tool.name}
        if tool.description is not None:
            entry["description"] = tool.description
        entry["parameters"] = Raw(relaxed_schema(tool.parameters or NO_PARAMETERS, tool.at))
        rebuilt.append({"type": "function", "function": entry})
    return encode(rebuilt) if rebuilt else b""


def _read(tool: _Tool, at: str) -> Tool:
    flat = not present(tool.function)
    schema = present(tool.input_schema)
    # Anthropic's own tools have types of their own and no schema.
    if tool.type not in (None, "function") and not (tool.type == "custom" and flat and schema):
        raise unsupported(f"{at}.type", f"{at}.type {safe_text(tool.type, 40)!r} is not supported")
    if not flat:
        at = f"{at}.function"
        function = decode(_FUNCTION, tool.function, at)
        name, description, parameters = function.name, function.description, present(function.parameters)
        where = f"{at}.parameters"
    elif tool.name is None:
        raise invalid(f"{at}.function", f"{at}.function is missing")
    else:
        name, description = tool.name, tool.description
        parameters = present(tool.parameters) or schema
        where = f"{at}.input_schema" if schema and parameters is schema else f"{at}.parameters"
    if not 0 < len(name) <= MAX_NAME:
        raise invalid(f"{at}.name", f"{at}.name must have 1 to {MAX_NAME} characters")
    return Tool(name, description, parameters, where)


def _offer(mode: str, tools: tuple[Tool, ...]) -> Offer:
    meant = _MODES.get(mode)
    if meant is None:
        raise _unknown(mode)
    if meant == "none":
        # Without tools no call is possible: a surer "none" than the engine's.
        return Offer()
    if meant == "required" and not tools:
        raise invalid("tool_choice", "tool_choice asks for a call, but tools is empty")
    return Offer(tools, forced=meant == "required")


def _allowed(names: Sequence[tuple[str, str]], tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Those of ``tools`` that are named; each name comes with the field it stands in."""
    known = {tool.name for tool in tools}
    for name, at in names:
        if name not in known:
            raise invalid(at, f"{at} names {safe_text(name, 40)!r}, which is not in tools")
    wanted = {name for name, _ in names}
    return tuple(tool for tool in tools if tool.name in wanted)


def _named(choice: _Choice, at: str) -> str:
    """The name in ``{"type": "function", "function": {"name": …}}``, or flat."""
    if choice.name is not None and not present(choice.function):
        return choice.name
    if not present(choice.function):
        raise invalid(f"{at}.function", f"{at}.function is missing")
    return decode(_NAMED, choice.function, f"{at}.function").name


def _unknown(mode: str) -> PeerError:
    return unsupported(
        "tool_choice",
        f"tool_choice {safe_text(mode, 40)!r} is not supported",
        "use auto, none, required or the name of a function",
    )

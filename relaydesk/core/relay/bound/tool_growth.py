"""Which tools of a request make its input grow while it is served (wire §5.4).

Tools that the caller runs grow nothing: their results come in a new request. The node's own (``zs_…``) and
those a vendor runs do: their results are read again within the same reserve. A type nobody knows is
taken for a vendor's.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Raw

from relaydesk.core.gateway.decode import present

ToolClass = Literal["client", "not_billed", "vendor_billable"]

_BUILTIN: Final = "zs_"
_DATED: Final = re.compile(r"(?s)(.+)_[0-9]{8}")
_ALIASES: Final = {
    "web_search_preview": "web_search",
    "computer": "computer_use",
    "computer_use_preview": "computer_use",
    "custom_tool": "custom",
    "code_execution": "code_interpreter",
    "collections_search": "file_search",
}
_RUN_BY_THE_CALLER: Final = frozenset(
    {
        "function",
        "tool",
        "custom",
        "local_shell",
        "apply_patch",
        "computer_use",
        "bash",
        "text_editor",
        "str_replace_editor",
        "str_replace_based_edit_tool",
    }
)
# Run by a vendor, without a fee of its own.
_FREE_AT_A_VENDOR: Final = frozenset({"mcp"})


class ClassifiedTool(NamedTuple):
    """A tool's canonical name, and who is paid for its calls."""

    name: str
    tool_class: ToolClass


class _Tool(msgspec.Struct):
    type: Raw = Raw()
    function: Raw = Raw()
    environment: Raw = Raw()


class _Named(msgspec.Struct):
    name: Raw = Raw()
    type: Raw = Raw()


class _Body(msgspec.Struct):
    tools: Raw = Raw()


_BODY: Final = msgspec.json.Decoder(_Body)
_LIST: Final = msgspec.json.Decoder(list[Raw])
_TOOL: Final = msgspec.json.Decoder(_Tool)
_NAMED: Final = msgspec.json.Decoder(_Named)
_TEXT: Final = msgspec.json.Decoder(str)
_FAILURES: Final = (msgspec.MsgspecError, ValueError, RecursionError)


def grows_while_served(body: bytes) -> bool:
    """Whether a request's tools make its input grow on the serving side. False for what is no request."""
    for entry in _entries(body):
        name, tool_class = classify_tool(entry)
        if name.startswith(_BUILTIN) or (tool_class != "client" and name not in _RUN_BY_THE_CALLER):
            return True
    return False


def builtin_tools(body: bytes) -> tuple[str, ...]:
    """The node's own tools (``zs_…``) that a request asks for, in its order."""
    named = (_string(tool.type) for tool in map(_tool, _entries(body)) if tool is not None)
    return tuple(name for name in named if name.startswith(_BUILTIN))


def classify_tool(entry: bytes | Raw) -> ClassifiedTool:
    """One entry of ``tools``, as JSON. What is no object is the caller's, without a name."""
    tool = _tool(entry)
    if tool is None:
        return ClassifiedTool("", "client")
    kind = _string(tool.type).strip().lower()
    function = _member(tool.function).name
    name = _string(function)
    if kind.startswith(_BUILTIN):
        return ClassifiedTool(kind, "client")
    if kind == "function" or (not kind and not name.startswith("$")):
        return ClassifiedTool(name, "client")
    if kind in ("", "builtin_function"):
        return ClassifiedTool(normalize_tool_name(name), "vendor_billable")
    if kind == "shell":
        local = _string(_member(tool.environment).type).strip().lower() == "local"
        return (
            ClassifiedTool("local_shell", "not_billed") if local else ClassifiedTool(kind, "vendor_billable")
        )
    name = normalize_tool_name(kind)
    free = name in _RUN_BY_THE_CALLER or name in _FREE_AT_A_VENDOR
    return ClassifiedTool(name, "not_billed" if free else "vendor_billable")


def normalize_tool_name(name: str) -> str:
    """One name for a tool that vendors spell differently: no ``$``, ``_call(s)`` or date, aliases folded."""
    name = name.strip().lower().removeprefix("$")
    name = name.removesuffix("_calls") if name.endswith("_calls") else name.removesuffix("_call")
    dated = _DATED.fullmatch(name)
    name = dated[1] if dated else name
    return _ALIASES.get(name, name)


def _entries(body: bytes) -> list[Raw]:
    try:
        tools = present(_BODY.decode(body).tools)
        return _LIST.decode(tools) if tools else []
    except _FAILURES:
        return []


def _tool(entry: bytes | Raw) -> _Tool | None:
    try:
        return _TOOL.decode(entry)
    except _FAILURES:
        return None


def _member(data: Raw) -> _Named:
    try:
        return _NAMED.decode(data)
    except _FAILURES:
        return _Named()


def _string(data: Raw) -> str:
    try:
        return _TEXT.decode(data)
    except _FAILURES:
        return ""

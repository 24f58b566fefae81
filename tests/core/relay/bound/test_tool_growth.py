"""Which tools grow a request while it is served."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.relay.bound.tool_growth import (
    builtin_tools,
    classify_tool,
    grows_while_served,
    normalize_tool_name,
)
from tests.support.mutate import JSON, mutated


def body(*tools: Any) -> bytes:
    return json.dumps({"model": "m", "tools": list(tools)}).encode()


@pytest.mark.parametrize(
    ("tool", "name", "tool_class", "grows"),
    [
        ({"type": "function", "function": {"name": "Look_Up"}}, "Look_Up", "client", False),
        ({"type": "zs_web_read"}, "zs_web_read", "client", True),
        ({"type": " ZS_Web_Read "}, "zs_web_read", "client", True),
        ({"type": "function", "function": {"name": "zs_mine"}}, "zs_mine", "client", True),
        ({"type": "Web_Search_20250305"}, "web_search", "vendor_billable", True),
        ({"type": "text_editor_20250728"}, "text_editor", "not_billed", False),
        ({"type": "str_replace_based_edit_tool"}, "str_replace_based_edit_tool", "not_billed", False),
        ({"type": "custom"}, "custom", "not_billed", False),
        ({"type": "mcp"}, "mcp", "not_billed", True),
        ({"type": "shell", "environment": "local"}, "shell", "vendor_billable", True),
        ({"type": "shell", "environment": {"type": " LOCAL "}}, "local_shell", "not_billed", False),
        ({"type": 7, "function": {"name": 7}}, "", "client", False),
        ({"function": {"name": "$code_execution"}}, "code_interpreter", "vendor_billable", True),
        ([], "", "client", False),
    ],
)
def test_the_class_of_a_tool(tool: Any, name: str, tool_class: str, grows: bool) -> None:
    assert classify_tool(json.dumps(tool).encode()) == (name, tool_class)
    assert grows_while_served(body(tool)) is grows


@pytest.mark.parametrize(
    "kind",
    [
        "function",
        "tool",
        "custom",
        "local_shell",
        "apply_patch",
        "computer",
        "computer_use_preview",
        "bash_20250124",
        "text_editor",
        "str_replace_editor",
        "str_replace_based_edit_tool",
    ],
)
def test_what_the_caller_runs_grows_nothing(kind: str) -> None:
    assert not grows_while_served(body({"type": kind}))
    assert grows_while_served(body({"type": kind}, {"type": "mcp"}))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_20250101", "_20250101"),
        ("x_2025010", "x_2025010"),
        ("x_2025010a", "x_2025010a"),
        ("x_٢٠٢٥٠١٠١", "x_٢٠٢٥٠١٠١"),
        ("x_20250101_call", "x"),
        ("x_call_20250101", "x_call"),
        ("$$x", "$x"),
        ("x_calls_call", "x_calls"),
        ("a\nb_20250101", "a\nb"),
        ("", ""),
    ],
)
def test_names_are_folded_once(name: str, expected: str) -> None:
    assert normalize_tool_name(name) == expected


def test_the_nodes_own_tools() -> None:
    asked = body({"type": "zs_b"}, {"type": "function"}, "zs_c", {"type": "zs_a"}, {"type": "ZS_x"})
    assert builtin_tools(asked) == ("zs_b", "zs_a")
    for other in (b"", b"[]", b"{", b'{"tools":null}', b'{"tools":{"type":"zs_a"}}'):
        assert builtin_tools(other) == () and not grows_while_served(other)


@given(
    mutated({"tools": [{"type": "shell", "environment": {"type": "local"}}, {"function": {"name": "$x"}}]})
)
def test_any_request_is_read(request: dict[str, Any]) -> None:
    data = json.dumps(request).encode()
    assert grows_while_served(data) in (True, False)
    builtin_tools(data)


@pytest.mark.long
@settings(max_examples=10_000)
@given(JSON, st.binary(max_size=8), st.integers(0, 60))
def test_ten_thousand_tools(tool: Any, noise: bytes, at: int) -> None:
    data = body(tool, {"type": "shell"})
    grows_while_served(data[:at] + noise + data[at:])
    classify_tool(noise + json.dumps(tool).encode())
    normalize_tool_name(noise.decode("latin-1"))

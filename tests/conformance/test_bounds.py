"""The published vectors of the input bound, the reserve's count and the tools that grow it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.relay.bound.measure import Bounds, input_bound, input_bounds
from relaydesk.core.relay.bound.reserve_count import reserve_input_count, tool_growth
from relaydesk.core.relay.bound.tool_growth import classify_tool, grows_while_served, normalize_tool_name

FOLDER = os.environ.get("RELAYDESK_VECTORS")
if not FOLDER:
    pytest.skip("RELAYDESK_VECTORS names no folder of vectors", allow_module_level=True)


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(FOLDER or "") / name).read_text())
    return found


def _named(case: Any) -> str:
    return str(case["name"])


TOKENIZE = _read("tokenize_vectors.partial.json")
TOOLS = _read("tool_growth_vectors.json")


@pytest.mark.parametrize("case", TOKENIZE["input_token_bound"], ids=_named)
def test_the_bound_of_a_body(case: dict[str, Any]) -> None:
    body = bytes.fromhex(case["body_hex"])
    expected = Bounds(case["expected"], case["expected_v2"])
    assert input_bounds(body) == expected
    assert (input_bound(body, 1), input_bound(body, 2)) == expected


def test_a_body_that_nests_deeply() -> None:
    body = b'{"a":' + b"[" * 600 + b'"x"' + b"]" * 600 + b"}"
    assert input_bounds(body) == (637, 637)


@pytest.mark.parametrize("case", TOKENIZE["reserve_input_count"], ids=_named)
def test_the_count_of_a_reserve(case: dict[str, Any]) -> None:
    growth = tool_growth(
        grows=case["carries_tools"],
        rounds=case["max_tool_iterations"],
        headroom=case["per_iter_headroom"],
    )
    count = reserve_input_count(
        case["body_bound"],
        growth=growth,
        max_output=case["max_output"],
        context_window=case["context_window"],
        floor=case["floor"],
    )
    assert count == case["expected"]


@pytest.mark.parametrize("case", TOOLS["body_drives_server_side_tool_growth"], ids=_named)
def test_tools_that_grow_the_input(case: dict[str, Any]) -> None:
    assert grows_while_served(case["body"].encode()) is case["expected"]


@pytest.mark.parametrize("case", TOOLS["classify_tool_entry"], ids=_named)
def test_the_class_of_a_tool(case: dict[str, Any]) -> None:
    assert classify_tool(case["entry"].encode()) == (case["want_name"], case["want_class"])


@pytest.mark.parametrize("name", TOOLS["normalize_tool_name"])
def test_the_name_of_a_tool(name: str) -> None:
    assert normalize_tool_name(name) == TOOLS["normalize_tool_name"][name]

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.core.errors import FaultError
from relaydesk.core.relay.exchange.demand import demand_of

CHAT = "/v1/chat/completions"


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "net/m", "messages": [], "store": False, **fields}).encode()


def test_what_a_chat_needs() -> None:
    demand = demand_of(CHAT, body(stream=True, max_tokens=7, provider={"sort": "price"}))
    assert (demand.api, demand.model, demand.stream, demand.max_output) == ("chat", "m", True, 7)
    assert json.loads(demand.hints) == {"sort": "price"}
    assert b"provider" not in demand.body
    # Half of the sealed body's bytes, and 32 (wire §5.4).
    assert demand.bounds.v1 == demand.bounds.v2 == -(-len(demand.body) // 2) + 32
    assert (demand.grows, demand.tools) == (False, ())


def test_what_tools_need() -> None:
    tools = [{"type": "zs_web_search"}, {"type": "function", "function": {"name": "f"}}]
    demand = demand_of(CHAT, body(tools=tools))
    assert (demand.grows, demand.tools) == (True, ("zs_web_search",))


@pytest.mark.parametrize(
    ("path", "fields", "limit"),
    [
        (CHAT, {}, None),
        (CHAT, {"max_tokens": None}, None),
        (CHAT, {"max_tokens": 5, "max_completion_tokens": 6}, 6),
        (CHAT, {"max_tokens": 5, "max_completion_tokens": None}, 5),
        (CHAT, {"max_output_tokens": 5}, None),
        ("/v1/responses", {"max_output_tokens": 5}, 5),
        ("/v1/responses", {"max_tokens": 5}, None),
    ],
)
def test_the_limit_of_each_dialect(path: str, fields: dict[str, Any], limit: int | None) -> None:
    assert demand_of(path, body(**fields)).max_output == limit


@pytest.mark.parametrize("limit", [0, -1, 2**31 + 1, "5", 1.5, True, []])
def test_a_limit_that_is_none_is_refused_by_its_name(limit: Any) -> None:
    with pytest.raises(FaultError) as caught:
        demand_of(CHAT, body(max_completion_tokens=limit))
    assert (caught.value.fault.code, caught.value.fault.param) == ("invalid_request", "max_completion_tokens")


@pytest.mark.parametrize("stream", ["yes", 1, []])
def test_a_stream_that_is_no_flag_is_refused(stream: Any) -> None:
    with pytest.raises(FaultError) as caught:
        demand_of(CHAT, body(stream=stream))
    assert caught.value.fault.param == "stream"


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/completions", "", "/v1/chat/completions?x=1"])
def test_other_paths_are_refused_by_name(path: str) -> None:
    with pytest.raises(FaultError) as caught:
        demand_of(path, body())
    assert caught.value.fault.code == "unsupported"


def test_nothing_of_a_prompt_is_shown() -> None:
    demand = demand_of(
        CHAT, body(messages=[{"role": "user", "content": "heron"}], provider={"only": ["heron"]})
    )
    assert "heron" not in repr(demand)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_request_or_refused(data: bytes) -> None:
    assert _status(data) in (200, 400)


def _status(data: bytes) -> int:
    try:
        demand_of(CHAT, data)
    except FaultError as error:
        return error.fault.rule.status
    return 200

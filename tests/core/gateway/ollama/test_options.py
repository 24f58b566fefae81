"""Ollama's options as fields of a chat request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.decode import encode
from relaydesk.core.gateway.ollama.chat import chat_plan
from relaydesk.core.gateway.ollama.options import Options, chat_fields

USER = {"role": "user", "content": "hi"}


def sent(**options: Any) -> dict[str, Any]:
    """What the engine is asked, without what every request has."""
    plan = chat_plan(json.dumps({"messages": [USER], "options": options}).encode())
    body = json.loads(plan.work.body(0, alias="m", slot=None, cache_prompt=True, extensions=False))
    return {key: body[key] for key in body if key not in ("model", "messages", "stream", "stream_options")}


def test_what_shapes_the_answer_reaches_the_engine() -> None:
    options = {
        "temperature": 0,
        "top_p": 0.5,
        "min_p": 0.1,
        "typical_p": 0.9,
        "presence_penalty": 0.2,
        "frequency_penalty": -0.2,
        "repeat_penalty": 1.1,
        "top_k": 40,
        "seed": 7,
        "repeat_last_n": 64,
        "stop": ["x", "y"],
    }
    assert sent(**options, num_predict=9) == {**options, "max_tokens": 9}


def test_the_machine_is_the_operators_and_unknown_options_are_nobodys() -> None:
    machine = {"num_ctx": 131_072, "num_keep": 4, "num_batch": 512, "num_gpu": 99, "main_gpu": 0}
    assert sent(**machine, num_thread=8, use_mmap=True, f16_kv=True, penalize_newline=True, foo=[1]) == {}


def test_neutral_values_of_samplers_that_are_gone() -> None:
    assert sent(mirostat=0, mirostat_tau=5.0, mirostat_eta=0.1, tfs_z=1, tfs_zz="x") == {}


@pytest.mark.parametrize(("limit", "asked"), [(1, {"max_tokens": 1}), (0, {}), (-1, {}), (-2, {})])
def test_a_limit_below_one_is_none(limit: int, asked: dict[str, Any]) -> None:
    assert sent(num_predict=limit) == asked


def test_the_seed_that_asks_for_another_answer_each_time_is_none() -> None:
    assert sent(seed=-1) == {}
    assert sent(seed=0) == {"seed": 0}


def test_whole_numbers_may_come_as_floats_and_null_is_absent() -> None:
    assert sent(top_k=40.0, num_predict=3.0, seed=None, stop=None) == {"top_k": 40, "max_tokens": 3}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("temperature", "hot"),
        ("temperature", 3),
        ("top_p", 1.5),
        ("min_p", -1),
        ("typical_p", 2),
        ("top_k", 1.5),
        ("top_k", "40"),
        ("top_k", -2),
        ("seed", 2**70),
        ("seed", [1]),
        ("repeat_penalty", 0),
        ("repeat_last_n", -2),
        ("presence_penalty", 9),
        ("frequency_penalty", True),
        ("num_predict", "all"),
        ("num_predict", 2**40),
        ("num_ctx", "big"),
        ("num_ctx", 1.5),
        ("num_thread", {}),
        ("use_mmap", 1),
        ("stop", 1),
        ("stop", {}),
        ("stop", ["x"] * 99),
    ],
)
def test_a_wrong_value_is_a_400_that_names_the_option(option: str, value: object) -> None:
    with pytest.raises(PeerError) as caught:
        sent(**{option: value})
    fault = caught.value.fault
    assert (fault.code, fault.param) == ("invalid_request", f"options.{option}")
    assert fault.message.startswith(f"options.{option} ")


def test_a_stop_text_is_named_with_its_place() -> None:
    with pytest.raises(PeerError) as caught:
        sent(stop=["a", 1])
    assert caught.value.fault.param == "options.stop[1]"


@pytest.mark.parametrize(("option", "value"), [("mirostat", 2), ("tfs_z", 0.5)])
def test_what_cannot_be_done_is_refused(option: str, value: float) -> None:
    with pytest.raises(PeerError) as caught:
        sent(**{option: value})
    assert (caught.value.fault.code, caught.value.fault.param) == ("unsupported", f"options.{option}")


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(Options.__struct_fields__), VALUES))
def test_any_options_are_taken_or_refused_by_name(options: dict[str, Any]) -> None:
    try:
        found = sent(**options)
    except PeerError as error:
        param = error.fault.param or ""
        assert param.removeprefix("options.") in options
        return
    for name, value in found.items():
        given_as = "num_predict" if name == "max_tokens" else name
        assert options[given_as] == value or name == "stop"


def test_fields_are_json() -> None:
    assert encode(chat_fields(Options(top_k=2.0, temperature=0.5))) == b'{"temperature":0.5,"top_k":2}'

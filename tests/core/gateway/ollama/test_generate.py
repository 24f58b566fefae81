"""/api/generate, from a client's bytes to what an engine is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.gateway.faults import context_fault
from relaydesk.core.gateway.ollama.generate import generate_plan
from relaydesk.core.gateway.output import Identity, Spent
from relaydesk.core.gateway.usage import total_usage
from relaydesk.core.gateway.work import Capabilities, Plan
from tests.core.gateway.ollama.test_chat import VALUES, engine
from tests.core.gateway.ollama.test_messages import PICTURE


def ask(**fields: Any) -> Plan:
    return generate_plan(json.dumps({"prompt": "hi", **fields}).encode())


def refused(**fields: Any) -> tuple[str, str | None]:
    with pytest.raises(PeerError) as caught:
        ask(**fields)
    return caught.value.fault.code, caught.value.fault.param


def test_a_prompt_is_a_conversation_of_one_message() -> None:
    assert engine(ask())["messages"] == [{"role": "user", "content": "hi"}]
    assert engine(ask(system="Be brief.", options={"seed": 1})) == {
        **engine(ask()),
        "seed": 1,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
    }


def test_images_are_named_as_the_client_named_them() -> None:
    plan = ask(system="s", images=[PICTURE, PICTURE])
    assert [part["type"] for part in engine(plan)["messages"][1]["content"]] == [
        "text",
        "image_url",
        "image_url",
    ]
    with pytest.raises(PeerError) as caught:
        plan.work.fitted(Capabilities())
    assert caught.value.fault.param == "images[0]"
    assert caught.value.fault.message.startswith("images[0] ")
    assert refused(images=[PICTURE, "!"]) == ("invalid_request", "images[1]")


def test_the_empty_and_the_neutral_are_nothing() -> None:
    plain = engine(ask())
    neutral = {"suffix": "", "template": "", "context": [], "system": "", "raw": False, "images": []}
    assert engine(ask(**neutral)) == plain
    assert engine(ask(**dict.fromkeys(neutral))) == plain


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("suffix", 3, "invalid_request"),
        ("template", "{{ .Prompt }}", "unsupported"),
        ("context", [1, 2], "unsupported"),
        ("context", "x", "invalid_request"),
        ("raw", "x", "invalid_request"),
        ("prompt", 3, "invalid_request"),
        ("system", [], "invalid_request"),
        ("images", "x", "invalid_request"),
        ("format", "xml", "invalid_request"),
    ],
)
def test_what_cannot_be_is_named(field: str, value: object, code: str) -> None:
    assert refused(**{field: value}) == (code, field)


OPTIONS = {"temperature": 0, "num_predict": 3, "typical_p": 0.5, "repeat_last_n": 9, "stop": ["x"]}


def test_a_raw_prompt_goes_to_the_engine_as_it_is() -> None:
    plan = ask(prompt='<s>"hi"\n', raw=True, options=OPTIONS, logprobs=True, top_logprobs=9)
    assert plan.work.path == "/v1/completions"
    assert (plan.work.choices, plan.work.stream) == (1, True)
    sent = engine(plan)
    assert sent["prompt"] == '<s>"hi"\n'
    assert {
        key: sent[key] for key in ("temperature", "max_tokens", "typical_p", "repeat_last_n", "stop")
    } == {
        **{key: OPTIONS[key] for key in OPTIONS if key != "num_predict"},
        "max_tokens": 3,
    }
    assert sent["logprobs"] == 9
    assert engine(ask(raw=True, logprobs=True))["logprobs"] == 1
    assert "logprobs" not in engine(ask(raw=True))
    assert not ask(raw=True, stream=False).work.stream
    assert ask(raw=True, keep_alive="1m").keep_alive_s == 60


def test_a_gap_is_filled_where_the_model_can() -> None:
    work = ask(prompt="def f(", suffix="): pass").work
    with pytest.raises(PeerError) as caught:
        work.fitted(Capabilities())
    assert (caught.value.fault.code, caught.value.fault.param) == ("unsupported", "suffix")
    fitted = work.fitted(Capabilities(infill=True, infill_tokens=(1, 2, 3)))
    body = json.loads(fitted.body(0, alias="m", slot=0, cache_prompt=True, extensions=True))
    assert body["prompt"] == ["", 1, "def f(", 2, "): pass", 3]
    assert ask(prompt="", suffix="x").work.choices == 1


@pytest.mark.parametrize("mode", [{"raw": True}, {"suffix": "x"}])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("system", "s"),
        ("images", [PICTURE]),
        ("format", "json"),
        ("format", {"type": "object"}),
        ("think", True),
    ],
)
def test_what_needs_a_template_is_refused_without_one(
    mode: dict[str, Any], field: str, value: object
) -> None:
    assert refused(**mode, **{field: value}) == ("unsupported", field)


@pytest.mark.parametrize("mode", [{"raw": True}, {"suffix": "x"}])
@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"options": {"temperature": 9}}, "options.temperature"),
        ({"options": {"num_predict": 2**40}}, "options.num_predict"),
        ({"options": {"typical_p": 2}}, "options.typical_p"),
        ({"top_logprobs": 21, "logprobs": True}, "top_logprobs"),
        ({"top_logprobs": 1}, "top_logprobs"),
        ({"keep_alive": "x"}, "keep_alive"),
    ],
)
def test_bare_prompts_have_the_same_bounds(mode: dict[str, Any], fields: dict[str, Any], param: str) -> None:
    assert refused(**mode, **fields) == ("invalid_request", param)


def test_raw_and_a_suffix_do_not_go_together() -> None:
    assert refused(raw=True, suffix="x") == ("unsupported", "suffix")


def test_an_overflow_is_said_of_the_prompt() -> None:
    for fields in ({}, {"raw": True}):
        fault = ask(**fields).work.blamed(context_fault(900, 512))
        assert (fault.param, fault.hint) == ("prompt", "shorten the prompt")
        assert "512 tokens" in fault.message
    other = Fault("engine_failed", "it broke")
    assert ask().work.blamed(other) == other


@pytest.mark.parametrize(("keep_alive", "reason"), [(None, "load"), ("1m", "load"), (0, "unload")])
def test_without_a_prompt_the_model_is_loaded_or_unloaded(keep_alive: Any, reason: str) -> None:
    for prompt in ("", None):
        found = ask(prompt=prompt, keep_alive=keep_alive, images=[])
        assert found.unload == (reason == "unload")
        assert found.work.choices == 0
        last = json.loads(found.output(Identity("", "m", 0)).close(total_usage([]), Spent()))
        assert (last["response"], last["done_reason"]) == ("", reason)


def test_an_image_alone_is_a_question() -> None:
    assert ask(prompt="", images=[PICTURE]).work.choices == 1


@settings(max_examples=120)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "model",
                "prompt",
                "system",
                "images",
                "suffix",
                "template",
                "context",
                "raw",
                "think",
                "options",
            ]
        ),
        VALUES,
    )
)
def test_any_body_is_understood_or_refused_by_name(fields: dict[str, Any]) -> None:
    try:
        found = generate_plan(json.dumps(fields).encode())
    except PeerError as error:
        param = error.fault.param
        assert param is not None
        assert param.partition(".")[0].partition("[")[0] in fields
        return
    if found.work.choices:
        engine(found)

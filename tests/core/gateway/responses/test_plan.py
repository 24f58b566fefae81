"""A response's request as a plan: what the engine is asked, and who says the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.gateway.responses.output import ResponsesOutput
from relaydesk.core.gateway.responses.plan import responses_plan
from relaydesk.core.gateway.work import Capabilities, Plan
from tests.support.pieces import ME, content, finish, whole


def plan(**fields: Any) -> Plan:
    return responses_plan(json.dumps({"input": "Hi", **fields}).encode())


def test_what_the_engine_is_asked() -> None:
    work = plan(model="m", instructions="Be brief.", max_output_tokens=5, stream=True).work
    assert (work.model, work.stream, work.choices, work.path) == ("m", True, 1, "/v1/chat/completions")
    body = json.loads(work.body(0, alias="a", slot=0, cache_prompt=True, extensions=True))
    assert (body["model"], body["max_tokens"]) == ("a", 5)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


def test_an_image_that_the_model_cannot_see_is_named() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
    work = plan(input=[{"role": "user", "content": [image]}]).work
    with pytest.raises(PeerError) as caught:
        work.fitted(Capabilities())
    assert caught.value.fault.param == "input[0].content[0]"


def test_what_an_engine_finds_wrong_with_the_messages_is_wrong_with_the_input() -> None:
    work = plan().work.limited(3)
    fault = Fault("context_length_exceeded", "too long", param="messages")
    assert work.blamed(fault).param == "input"
    other = Fault("engine_failed", "gone")
    assert work.blamed(other) == other


def test_the_answer_repeats_the_request() -> None:
    output = plan(temperature=0.5).output(ME)
    assert isinstance(output, ResponsesOutput)
    assert whole(output, [content("a"), finish("stop")])["temperature"] == 0.5

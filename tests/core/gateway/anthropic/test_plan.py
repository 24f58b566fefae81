"""A message's request as a plan: what the engine is asked, and who says the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.anthropic.output import MessagesOutput
from relaydesk.core.gateway.anthropic.plan import count_work, messages_plan
from relaydesk.core.gateway.work import Capabilities, Plan
from tests.support.pieces import ME, content, finish, reasoning, whole
from tests.support.scripted_engine import piece

HI = [{"role": "user", "content": "Hi"}]


def plan(**fields: Any) -> Plan:
    return messages_plan(json.dumps({"max_tokens": 5, "messages": HI, **fields}).encode())


def test_what_the_engine_is_asked() -> None:
    work = plan(model="m", system="Be brief.", stop_sequences=["x"], stream=True).work
    assert (work.model, work.stream, work.choices, work.path) == ("m", True, 1, "/v1/chat/completions")
    body = json.loads(work.body(0, alias="a", slot=0, cache_prompt=True, extensions=True))
    assert (body["model"], body["max_tokens"]) == ("a", 5)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


@pytest.mark.parametrize("extensions", [True, False])
def test_an_engine_of_ours_is_not_told_of_stop_sequences(extensions: bool) -> None:
    asked = plan(stop_sequences=["STOP"])
    work = asked.work.limited(3)
    reader = work.reader(0, "call")
    body = json.loads(work.body(0, alias="a", slot=0, cache_prompt=True, extensions=extensions))
    assert body.get("stop") == (None if extensions else ["STOP"])
    assert body["max_tokens"] == 3
    made = reader.read(piece("one STOP two"))
    assert made is not None
    assert reader.tally.exact is extensions
    body = whole(asked.output(ME), [made])
    assert (body["content"], body["stop_sequence"]) == ([{"type": "text", "text": "one "}], "STOP")


def test_an_image_that_the_model_cannot_see_is_named() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    work = plan(messages=[{"role": "user", "content": [image]}]).work
    with pytest.raises(PeerError) as caught:
        work.fitted(Capabilities())
    assert caught.value.fault.param == "messages[0].content[0]"


def test_thoughts_are_told_unless_they_are_not_wanted() -> None:
    for display, blocks in (("summarized", 2), ("omitted", 1)):
        output = plan(thinking={"type": "adaptive", "display": display}).output(ME)
        assert isinstance(output, MessagesOutput)
        assert len(whole(output, [reasoning("h"), content("a"), finish("stop")])["content"]) == blocks


def test_a_count_is_of_the_same_prompt() -> None:
    asked = {"messages": HI, "system": "Be brief.", "tools": [{"name": "f", "input_schema": {}}]}
    counting, asking = count_work(json.dumps(asked).encode()), plan(**asked).work
    bodies = [
        json.loads(work.body(0, alias="a", slot=0, cache_prompt=True, extensions=True))
        for work in (counting, asking)
    ]
    assert bodies[1].pop("max_tokens") == 5
    assert bodies[0] == bodies[1]

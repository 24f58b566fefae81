from __future__ import annotations

import json

import pytest

from relaydesk.core.errors import Fault, PeerError
from relaydesk.core.gateway.completions.plan import CompletionWork, completion_plan
from relaydesk.core.gateway.output import Identity
from relaydesk.core.gateway.usage import Tally
from relaydesk.core.gateway.work import Capabilities


def work(**fields: object) -> CompletionWork:
    plan = completion_plan(json.dumps({"prompt": "Hi", **fields}).encode())
    assert isinstance(plan.work, CompletionWork)
    return plan.work


def test_each_prompt_is_counted_once_and_every_choice() -> None:
    tallies = [
        Tally(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=2)
        for prompt, cached in ((5, 1), (5, 4), (7, 3), (7, 6))
    ]
    usage = work(prompt=["a", "b"], n=2).usage(tallies, cached=True)
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (12, 8, 20)
    assert usage.cached_tokens == 4
    assert work(prompt=["a", "b"], n=2).usage(tallies, cached=False).prompt_tokens_details is None


def test_what_a_run_needs_to_know() -> None:
    asked = work(model="m", prompt=["a", "b"], n=2, stream=True)
    assert (asked.model, asked.stream, asked.choices, asked.path) == ("m", True, 4, "/v1/completions")
    output = completion_plan(b'{"prompt":"Hi"}').output(Identity("t", "m", 0))
    assert output.media_type == "text/event-stream"


def test_the_models_own_tokens_go_round_the_gap() -> None:
    with pytest.raises(PeerError):
        work(suffix="x").fitted(Capabilities())
    fitted = work(suffix="x").fitted(Capabilities(infill=True, infill_tokens=(1, 2, 3)))
    body = json.loads(fitted.body(0, alias="m", slot=None, cache_prompt=True, extensions=True))
    assert body["prompt"] == ["", 1, "Hi", 2, "x", 3]
    far = work(suffix="x").fitted(Capabilities(infill=True))
    assert json.loads(far.body(0, alias="m", slot=None, cache_prompt=True, extensions=False))["suffix"] == "x"


def test_an_engines_fault_names_the_clients_field() -> None:
    fault = Fault("context_length_exceeded", "too long", "shorten the messages", param="messages")
    assert work().blamed(fault).param == "prompt"

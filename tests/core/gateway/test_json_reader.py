"""An answer that was to be JSON is, or its engine has failed (report B19)."""

from __future__ import annotations

import json

import pytest

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.json_reader import JsonReader
from relaydesk.core.gateway.piece import ChoiceStream
from tests.support.scripted_engine import piece


def read(*texts: str, finish: str = "stop") -> str:
    reader = JsonReader(ChoiceStream())
    pieces = [reader.read(data) for data in (*map(piece, texts), piece(None, finish))]
    reader.end()
    return "".join(json.loads(each.content) for each in pieces if each is not None and each.content)


@pytest.mark.parametrize(
    "texts",
    [
        ['{"a"', ": 1}"],
        [" ", "\n[", "]"],
        ['"', 'x"'],
        ["-1"],
        ["true"],
        ['{"a": "\\ud800"}'],
        ["1e999"],
    ],
)
def test_json_passes_as_it_comes(texts: list[str]) -> None:
    assert read(*texts) == "".join(texts)


@pytest.mark.parametrize("texts", [["Sure", "!"], ["The answer"], ['{"a": 1', ", oops"], ["{}", "{}"], []])
def test_anything_else_is_the_engines_failure(texts: list[str]) -> None:
    with pytest.raises(PeerError) as caught:
        read(*texts)
    assert caught.value.fault.code == "engine_failed"


def test_prose_is_not_even_begun() -> None:
    with pytest.raises(PeerError):
        JsonReader(ChoiceStream()).read(piece("Sure"))


def test_what_is_cut_by_its_limit_is_what_was_asked_for() -> None:
    assert read('{"a": 1', finish="length") == '{"a": 1'


def test_a_refusal_is_an_answer_too() -> None:
    reader = JsonReader(ChoiceStream())
    said = reader.read(json.dumps({"choices": [{"delta": {"refusal": "no"}}]}).encode())
    assert said is not None and said.refusal == b'"no"'
    last = reader.read(piece(None, "stop"))
    assert last is not None and last.finish == b'"stop"'

"""A call out of the JSON of one, however it is cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.answer import Answer
from relaydesk.core.gateway.call_reader import MAX_HEAD, CallReader
from relaydesk.core.gateway.forced import forced_call
from relaydesk.core.gateway.piece import ChoiceStream, Piece
from relaydesk.core.gateway.schema.shapes import Shapes
from relaydesk.core.gateway.tools import read_tools
from tests.support.schemas import made, schemas


def chunk(text: str | None = None, finish: str | None = None, **delta: Any) -> bytes:
    delta |= {} if text is None else {"content": text}
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode()


def read(*texts: str, finish: str = "stop", names: tuple[str, ...] = ("f", "g")) -> list[Piece]:
    reader = CallReader(ChoiceStream(), names, "call_1")
    pieces = [reader.read(chunk(text)) for text in texts]
    pieces.append(reader.read(chunk(finish=finish)))
    reader.end()
    return [piece for piece in pieces if piece is not None]


def deltas(pieces: list[Piece]) -> list[Any]:
    return [delta for piece in pieces if piece.calls for delta in json.loads(piece.calls)]


def folded(pieces: list[Piece]) -> tuple[list[tuple[str, str, str]], str]:
    answer = Answer()
    for piece in pieces:
        answer.add(piece)
    calls = [(call.id, call.name, json.loads(call.arguments)) for call in answer.calls]
    assert answer.content == b""
    return calls, json.loads(answer.finish)


def test_the_name_comes_once_and_the_arguments_as_they_come() -> None:
    pieces = read('{"na', 'me": "f", "arg', 'uments": {"x"', ': "}\\"', '"}', "}\n")
    assert deltas(pieces) == [
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}},
        *({"index": 0, "function": {"arguments": text}} for text in ['{"x": "}\\"', '"}']),
    ]
    assert [piece.finish for piece in pieces if piece.finish] == [b'"tool_calls"']


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"f","arguments":{}}',
        ' \n{ "name" : "f" ,\n "arguments" : {} }',
        '```json\n{"name":"f","arguments":{}}\n```',
        '{"name":"\\u0066","arguments":{}} and more',
    ],
)
def test_ways_to_write_a_call(text: str) -> None:
    assert folded(read(text)) == ([("call_1", "f", "{}")], "tool_calls")
    assert folded(read(*text)) == ([("call_1", "f", "{}")], "tool_calls")


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('{"name":"f","arguments":{"x": [1, {"', [("call_1", "f", '{"x": [1, {"')]),
        ('{"name":"f","arguments":{"x":"\\', [("call_1", "f", '{"x":"\\')]),
        ('{"name":"f","argu', []),
        ("\n``", []),
        ("", []),
    ],
)
def test_a_call_that_is_cut_ends_with_length(text: str, calls: list[Any]) -> None:
    for pieces in (read(text, finish="length"), read(*text, finish="length")):
        assert folded(pieces) == (calls, "length")


def test_a_whole_call_at_the_limit_is_a_call() -> None:
    assert folded(read('{"name":"f","arguments":{}}', finish="length"))[1] == "tool_calls"
    assert folded(read('{"name":"f","arguments":{}', finish="length"))[1] == "tool_calls"


@pytest.mark.parametrize(
    "text",
    [
        "The weather is fine.",
        '{"name":"h","arguments":{}}',
        '{"arguments":{},"name":"f"}' + " " * MAX_HEAD,
        '{"name":"f","arguments":[]}' + " " * MAX_HEAD,
        '{"name":"f","arguments":{"x":1',
        '{"name":"\\x","arguments":{}}',
        '{"name":"f","argu',
        "```yaml",
        "[",
        "",
    ],
)
def test_an_engine_that_does_not_keep_to_it_has_failed(text: str) -> None:
    with pytest.raises(PeerError) as caught:
        read(*text)
    assert caught.value.fault.code == "engine_failed"


def test_prose_is_never_said() -> None:
    reader = CallReader(ChoiceStream(), ("f",), "c")
    with pytest.raises(PeerError):
        reader.read(chunk("Sure"))


def test_a_call_that_the_engine_read_out_itself_passes() -> None:
    reader = CallReader(ChoiceStream(), ("f",), "c")
    call = [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]
    pieces = [reader.read(chunk(tool_calls=call)), reader.read(chunk(finish="stop"))]
    assert folded([piece for piece in pieces if piece]) == ([("a", "f", "{}")], "tool_calls")


def test_an_escape_that_is_cut_ends_no_string() -> None:
    whole = '{"name":"f","arguments":{"x":"\\"}\\\\"}}'
    arguments = '{"x":"\\"}\\\\"}'
    for cut in range(len(whole)):
        assert folded(read(whole[:cut], whole[cut:])) == ([("call_1", "f", arguments)], "tool_calls")
    reader = CallReader(ChoiceStream(), ("f",), "c")
    cut = whole.index("\\") + 1
    pieces = [reader.read(each) for each in (chunk(whole[:cut]), chunk(reasoning_content="hm"))]
    pieces += [reader.read(each) for each in (chunk(whole[cut:]), chunk(finish="stop"))]
    assert folded([piece for piece in pieces if piece])[0] == [("c", "f", arguments)]


def test_a_refusal_is_an_answer_too() -> None:
    reader = CallReader(ChoiceStream(), ("f",), "c")
    pieces = [reader.read(chunk(refusal="no")), reader.read(chunk(finish="stop"))]
    assert [(piece.refusal, piece.finish) for piece in pieces if piece] == [(b'"no"', b""), (b"", b'"stop"')]


def test_reasoning_passes_and_the_account_is_kept() -> None:
    reader = CallReader(ChoiceStream(), ("f",), "c")
    piece = reader.read(chunk(reasoning_content="hm"))
    assert piece is not None and piece.reasoning == b'"hm"'
    assert reader.read(chunk('{"name"')) is None
    assert reader.tally.completion_tokens == 2


@settings(max_examples=150, deadline=None)
@given(schemas(), st.booleans(), st.data())
def test_any_call_comes_back_exactly_however_it_is_cut(
    schema: Any, ascii_only: bool, data: st.DataObject
) -> None:
    schema = {
        "type": "object",
        "properties": {"a": schema, "b": {"type": "string"}},
        "required": ["b"],
        **schema,
    }
    tools = [{"name": "f", "parameters": {"type": "object"}}, {"name": "ö\n", "parameters": schema}]
    try:
        forced = forced_call(read_tools(Raw(json.dumps(tools).encode())))
        shapes = Shapes()
        shape = shapes.add(json.dumps(schema).encode(), "s")
    except PeerError:
        return
    arguments = json.dumps(data.draw(made(shape, shapes.defs)), ensure_ascii=ascii_only)
    space = data.draw(st.sampled_from(["", " ", "\n  "]))
    name = json.dumps("ö\n", ensure_ascii=ascii_only)
    text = f'{space}{{{space}"name":{space}{name},{space}"arguments":{space}{arguments}{space}}}{space}'
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert folded(read(*parts, names=forced.names)) == ([("call_1", "ö\n", arguments)], "tool_calls")
    # Cut off anywhere, what was said of the arguments is their beginning.
    end = data.draw(st.integers(0, text.index(arguments) + len(arguments) - 1))
    calls, finish = folded(
        read(
            *[part[: max(0, end - at)] for part, at in zip(parts, [0, *cuts], strict=True)],
            finish="length",
            names=forced.names,
        )
    )
    assert finish == "length"
    assert all(arguments.startswith(said) for _, _, said in calls)

"""Pieces of an answer, made up: what an `Output` is fed in tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from relaydesk.core.gateway.answer import Answer
from relaydesk.core.gateway.output import Identity, Output, Spent
from relaydesk.core.gateway.piece import Piece
from relaydesk.core.gateway.sse import SseParser
from relaydesk.core.gateway.usage import Usage, _Details

ME = Identity("abc", "public/name:q4", 1796000000999)
USAGE = Usage(7, 3, 10, _Details(2))
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def content(text: str, **logprobs: Any) -> Piece:
    return Piece(content=_json(text), logprobs=_json(logprobs) if logprobs else b"")


def reasoning(text: str) -> Piece:
    return Piece(reasoning=_json(text))


def refusal(text: str) -> Piece:
    return Piece(refusal=_json(text))


def opened(index: int, name: str = "f", arguments: str = "") -> Piece:
    """A tool call's first delta."""
    function = {"name": name, "arguments": arguments}
    return Piece(
        calls=_json([{"index": index, "id": f"call_{index}", "type": "function", "function": function}])
    )


def more(index: int, arguments: str) -> Piece:
    """Further arguments of a call."""
    return Piece(calls=_json([{"index": index, "function": {"arguments": arguments}}]))


def finish(reason: str) -> Piece:
    return Piece(finish=_json(reason))


@st.composite
def answers(draw: st.DrawFn) -> list[Piece]:
    """An answer in the order of a model: thoughts, text, calls with JSON arguments, the end."""
    pieces = [reasoning(text) for text in draw(st.lists(_TEXTS, max_size=3))]
    pieces += [content(text) for text in draw(st.lists(_TEXTS, max_size=3))]
    for number in range(draw(st.integers(0, 3))):
        arguments = json.dumps({"x": draw(_TEXTS)})
        cut = draw(st.integers(0, len(arguments)))
        pieces += [opened(number, arguments=arguments[:cut]), more(number, arguments[cut:])]
    return [*pieces, finish(draw(st.sampled_from(["stop", "length", "tool_calls", "content_filter"])))]


def whole(output: Output, pieces: Iterable[Piece], usage: Usage = USAGE) -> Any:
    """The body of an answer, decoded."""
    answer = Answer()
    for piece in pieces:
        answer.add(piece)
    return json.loads(output.whole([answer], usage, Spent()))


def streamed(output: Output, pieces: Iterable[Piece], usage: Usage = USAGE) -> list[Any]:
    """The data of a stream's events, decoded. Fails where an event's type is not its data's."""
    return events(b"".join(output.piece(0, piece) for piece in pieces) + output.close(usage, Spent()))


def events(frames: bytes) -> list[Any]:
    found = []
    for event in SseParser().feed(frames):
        data = json.loads(event.data)
        assert data["type"] == event.type
        found.append(data)
    return found

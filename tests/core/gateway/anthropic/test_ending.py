"""Stop sequences found by the reader."""

from __future__ import annotations

import pytest

from relaydesk.core.gateway.anthropic.ending import Ending, EndingReader
from relaydesk.core.gateway.piece import ChoiceStream
from tests.support.scripted_engine import piece


@pytest.mark.parametrize("told", [False, True])
def test_what_ended_it_is_noted_and_an_engine_that_goes_on_is_left(told: bool) -> None:
    ending = Ending()
    ending.told = told
    reader = EndingReader(ChoiceStream(), ["</a>", "STOP"], ending)
    reader.read(piece("one <", prompt_progress={"total": 5, "processed": 5}))
    assert ending.matched == ""
    last = reader.read(piece("/a> two"))
    assert last is not None
    assert (last.content, last.finish) == (b"", b'"stop"')
    assert ending.matched == "</a>"
    # An engine that was told ends by itself, with its account.
    assert reader.tally.exact is not told
    assert (reader.tally.prompt_tokens, reader.tally.completion_tokens) == (5, 2)
    assert reader.read(piece("STOP")) is None
    assert ending.matched == "</a>"


def test_an_answer_that_ends_by_itself_has_no_such_end() -> None:
    ending = Ending()
    reader = EndingReader(ChoiceStream(), ["STOP"], ending)
    pieces = [reader.read(piece("STO")), reader.read(piece(None, "stop"))]
    assert [each.content for each in pieces if each is not None] == [b'"STO"']
    assert ending.matched == ""
    reader.end()

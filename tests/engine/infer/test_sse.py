from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.engine.infer.sse import SseParser

# No line ends within a line of data, and no leading space, which the format eats.
LINE = st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=30).map(
    lambda text: text.lstrip(" ").encode()
)
NOISE = st.sampled_from([": ping", "event: x", "id: 7", "retry: 10", "unknown", "dataset: no"])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(LINE, min_size=1, max_size=3), max_size=5),
    st.lists(NOISE, max_size=3),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.booleans(),
    st.lists(st.integers(0, 5000), max_size=12),
)
def test_events_are_the_same_however_the_stream_is_cut(
    events: list[list[bytes]], noise: list[str], end: bytes, space: bool, places: list[int]
) -> None:
    prefix = b"data: " if space else b"data:"
    parts: list[bytes] = []
    for lines in events:
        parts += [word.encode() + end for word in noise]
        parts += [prefix + line + end for line in lines]
        parts.append(end)
    stream = b"".join(parts)
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    parser = SseParser()
    got = [event for a, b in pairwise(edges) for event in parser.feed(stream[a:b])]
    assert got == [b"\n".join(lines) for lines in events]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
def test_an_event_reads_the_same_byte_by_byte(end: bytes) -> None:
    stream = b"data: a" + end + b"data: b" + end + end + b"data: c" + end + end
    parser = SseParser()
    got = [event for at in range(len(stream)) for event in parser.feed(stream[at : at + 1])]
    assert got == [b"a\nb", b"c"]


def test_a_comment_alone_is_no_event() -> None:
    assert SseParser().feed(b": ping\n\n\n\n") == []


def test_an_event_cut_off_by_the_end_is_not_delivered() -> None:
    assert SseParser().feed(b"data: 1\n\ndata: 2\n") == [b"1"]


@pytest.mark.parametrize("step", [7, 64, 5000])
@pytest.mark.parametrize("line", [b"data: " + b"x" * 50 + b"\n", b"x" * 51], ids=["lines", "one line"])
def test_an_endless_event_is_refused_and_not_kept(step: int, line: bytes) -> None:
    parser = SseParser(limit=1000)
    stream = line * 100
    pieces = (parser.feed(stream[at : at + step]) for at in range(0, len(stream), step))
    with pytest.raises(PeerError, match="too long"):
        list(pieces)


def test_many_events_together_may_exceed_the_limit_of_one() -> None:
    assert len(SseParser(limit=100).feed(b"data: " + b"x" * 90 + b"\n\n" + b"data: y\n\n" * 500)) == 501

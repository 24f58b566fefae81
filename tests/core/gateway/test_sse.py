"""Server-sent events: any cut, any line end, bounded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import PeerError
from relaydesk.core.gateway.sse import DONE_FRAME, HEARTBEAT, Event, SseParser, data_frame


def parse(*pieces: bytes) -> list[Event]:
    parser = SseParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.close()


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        (b"data: a\n\ndata:b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", [b"a", b"b", b"c"]),
        (b": ping\n\ndata: a\n: x\n\n:\n\n", [b"a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"id: 3\nretry: 9\nfoo: x\ndata: a\n\n", [b"a"]),
        (b"id: 3\n\nretry: 3\n\n", []),
        (b"data:  a \n\n", [b" a "]),
        (b"data\n\n", [b""]),
        (b"data: a\n", [b"a"]),
        (b"data: a", []),
        (b"data: \xff\xf0\x9f\x98\x8a\n\n", ["�😊".encode()]),
    ],
)
def test_the_rules(stream: bytes, data: list[bytes]) -> None:
    assert [event.data for event in parse(stream)] == data


def test_types() -> None:
    assert parse(b"event: ping\ndata: {}\n\nevent: x\n\ndata: a\n\nerror: {}\n\n") == [
        Event("ping", b"{}"),
        Event("message", b"a"),
        Event("error", b"{}"),
    ]


LINES = st.sampled_from(
    [
        b"data: a",
        b"data:",
        b"data: \xf0\x9f\x98\x8a \xff",
        b": c",
        b"event: e",
        b"error: x",
        b"",
        b"",
        b"id: 1",
        b"zz",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(LINES, ENDS), max_size=20), st.binary(max_size=12), st.data())
def test_the_events_do_not_depend_on_the_cuts(
    lines: list[tuple[bytes, bytes]], noise: bytes, data: st.DataObject
) -> None:
    stream = b"".join(line + end for line, end in lines) + noise + b"\n\ndata: z\n\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert parse(*pieces) == parse(stream)
    assert parse(*[bytes([byte]) for byte in stream]) == parse(stream)
    for event in parse(stream):
        event.data.decode()


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_line_or_an_event_without_an_end_is_refused(size: int) -> None:
    def feed_all(piece: bytes, times: int) -> None:
        parser = SseParser(max_line=100, max_event=500)
        for _ in range(times):
            parser.feed(piece)

    with pytest.raises(PeerError, match="event without an end") as caught:
        feed_all(b"x" * size, 2000)
    assert caught.value.fault.code == "engine_failed"
    with pytest.raises(PeerError):
        feed_all(b"data: abc\n", 200)
    with pytest.raises(PeerError):
        feed_all(b"x" * 101 + b"\n", 1)
    feed_all(b"data: abc\n\n", 200)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=5))
def test_what_is_framed_is_read_back_as_one_event_each(texts: list[str]) -> None:
    stream = b"".join(data_frame(b"x" + text.encode()) + HEARTBEAT for text in texts) + DONE_FRAME
    flat = [b"x" + text.encode().replace(b"\r", b" ").replace(b"\n", b" ") for text in texts]
    assert [event.data for event in parse(stream)] == [*flat, b"[DONE]"]
    assert not any(line.startswith((b"id:", b"retry:", b"event:", b": ping")) for line in stream.split(b"\n"))

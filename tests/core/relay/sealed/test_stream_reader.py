"""The reader of sealed streams: any cut; drop, repeat, reorder and alter are seen; bounded; never raises."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.relay.sealed.box import Exchange
from relaydesk.core.relay.sealed.stream_reader import (
    Content,
    Done,
    ReceiptFrame,
    SettleGroup,
    StreamEvent,
    StreamReader,
    Violation,
)
from tests.support.mutants import mutants
from tests.support.sealed_stream import DONE, KEY, content, event, receipt, settle

AT = Exchange(KEY, "TX", "T1")
CHUNKS = [b'{"a":1}', b"", b"two\n\nlines"]
FRAMES = [content(index, chunk) for index, chunk in enumerate(CHUNKS)]
TAIL = [settle(b"group"), receipt(3, b"{}"), DONE]
READ: list[StreamEvent] = [*map(Content, CHUNKS), SettleGroup(b"group"), ReceiptFrame(b"{}"), Done(True)]


def read(*pieces: bytes) -> list[StreamEvent]:
    reader = StreamReader(AT)
    found = [each for piece in pieces for each in reader.feed(piece)] + reader.close()
    assert reader.ended and sum(isinstance(each, Done | Violation) for each in found) == 1
    assert reader.feed(b"".join(FRAMES)) == [] and reader.close() == []
    return found


def test_a_good_stream() -> None:
    reader = StreamReader(AT)
    assert [each for piece in [*FRAMES, *TAIL] for each in reader.feed(piece)] == READ
    assert reader.index == 4 and reader.ended
    assert reader.body_hash == hashlib.sha256(b"".join(CHUNKS)).hexdigest()


def test_comments_and_events_of_later_versions_take_no_place() -> None:
    odd = [b": keep-alive\n\n", b"event: zs-new\ndata: x\n\n", b": x\n", b"id: 3\n\n", b"retry: 1\n\n"]
    stream = [part for frame in [*FRAMES, *TAIL] for part in (*odd, frame)]
    assert read(*stream, b": more\n\n") == READ


def test_settle_group_and_receipt_are_optional_and_in_any_order() -> None:
    assert read(*FRAMES, TAIL[1], DONE) == [*READ[:3], ReceiptFrame(b"{}"), Done(True)]
    assert read(*FRAMES, DONE) == [*READ[:3], Done(False)]
    assert read(*FRAMES, TAIL[1], TAIL[0], DONE) == [*READ[:3], READ[4], READ[3], Done(True)]
    assert read(DONE) == [Done(False)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 600), max_size=8), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_the_events_do_not_depend_on_the_cuts(cuts: list[int], end: bytes) -> None:
    stream = b"".join([*FRAMES, *TAIL]).replace(b"\n", end)
    places = sorted(min(cut, len(stream)) for cut in cuts)
    pieces = [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True)]
    assert read(*pieces) == READ
    assert read(*[bytes([byte]) for byte in stream]) == READ


AS_RECEIPT = FRAMES[0].replace(b"event: zs", b"event: zs-receipt")
ALTERED = Violation("altered")


@pytest.mark.parametrize(
    ("stream", "found"),
    [
        # Dropped, repeated, swapped.
        ([FRAMES[0], FRAMES[2], *TAIL], [READ[0], ALTERED]),
        ([FRAMES[0], FRAMES[0], *TAIL], [READ[0], ALTERED]),
        ([FRAMES[1], FRAMES[0], *TAIL], [ALTERED]),
        # The last one dropped: only the receipt's place tells.
        ([*FRAMES[:2], *TAIL], [*READ[:2], READ[3], ALTERED]),
        ([*FRAMES, receipt(4, b"{}"), DONE], [*READ[:3], ALTERED]),
        # Settlement in the middle, and twice.
        ([FRAMES[0], TAIL[0], FRAMES[1]], [READ[0], READ[3], Violation("order")]),
        ([FRAMES[0], receipt(1, b"{}"), content(2, b"x")], [READ[0], READ[4], Violation("order")]),
        ([*FRAMES, TAIL[0], TAIL[0]], [*READ[:4], Violation("order")]),
        ([*FRAMES, TAIL[1], receipt(4, b"{}")], [*READ[:3], READ[4], Violation("order")]),
        # One kind passed off as another.
        ([AS_RECEIPT, FRAMES[1]], [ReceiptFrame(CHUNKS[0]), Violation("order")]),
        ([*FRAMES, TAIL[1].replace(b"zs-receipt", b"zs"), DONE], [*READ[:3], Content(b"{}"), Done(False)]),
        ([FRAMES[0], TAIL[0].replace(b"zs-settle-group", b"zs")], [READ[0], ALTERED]),
        # Plain content, plain errors.
        ([FRAMES[0], b'data: {"choices":[]}\n\n', *TAIL], [READ[0], Violation("unsealed")]),
        ([FRAMES[0], b'error: {"message":"x"}\n\n', *TAIL], [READ[0], Violation("unsealed")]),
        ([FRAMES[0], b"error: [DONE]\n\n"], [READ[0], Violation("unsealed")]),
        ([FRAMES[0], b"data: [DONE] \n\n"], [READ[0], Violation("unsealed")]),
        # No end.
        ([FRAMES[0], FRAMES[1][:-3]], [READ[0], Violation("cut")]),
        ([*FRAMES, *TAIL[:2]], [*READ[:5], Violation("cut")]),
        ([], [Violation("cut")]),
        # No base64, too short, two lines, another exchange.
        ([b"event: zs\ndata: ???\n\n"], [ALTERED]),
        ([b"event: zs\ndata:\n\n"], [ALTERED]),
        ([b"event: zs\ndata: AAAA\n\n"], [ALTERED]),
        ([FRAMES[0][:-1] + b"data: AAAA\n\n"], [ALTERED]),
        ([event(b"zs", b"zs\0frame\0TY\0T1\0" + bytes(8), b"x")], [ALTERED]),
    ],
)  # fmt: skip
def test_what_a_carrier_can_do_is_seen(stream: list[bytes], found: list[StreamEvent]) -> None:
    assert read(*stream) == found
    assert read(b"".join(stream)) == found


def test_the_index_advances_only_where_a_frame_opens() -> None:
    reader = StreamReader(AT)
    reader.feed(FRAMES[0] + FRAMES[2])
    assert reader.index == 1
    assert reader.body_hash == hashlib.sha256(CHUNKS[0]).hexdigest()


@pytest.mark.parametrize(
    "bad", [event(b"zs-settle-group", b"", b"x"), b"event: zs-settle-group\ndata: ?\n\n"]
)
def test_a_settle_group_that_does_not_open_is_absent_but_ends_the_content(bad: bytes) -> None:
    assert read(*FRAMES, bad, *TAIL[1:]) == [*READ[:3], *READ[4:]]
    assert read(FRAMES[0], bad, FRAMES[1]) == [READ[0], Violation("order")]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_one_changed_byte_never_passes_as_another_answer(data: st.DataObject) -> None:
    stream = bytearray(b"".join([*FRAMES, *TAIL]))
    at = data.draw(st.integers(0, len(stream) - 1))
    stream[at] = data.draw(st.integers(0, 255))
    check_no_lie(read(bytes(stream)))


def check_no_lie(found: list[StreamEvent]) -> None:
    """Whatever came through is a beginning of what was sealed; a receipt only behind all of it.

    The wire binds a receipt's frame as it binds content, so either may be passed off as the other, at its
    place: a receipt taken for content is missed as a receipt.
    """
    chunks = [each.data for each in found if isinstance(each, Content)]
    assert chunks == [*CHUNKS, b"{}"][: len(chunks)]
    assert len(chunks) < 4 or not any(isinstance(each, ReceiptFrame) for each in found)
    for each in found:
        assert not isinstance(each, SettleGroup) or each.data == b"group"
        assert not isinstance(each, ReceiptFrame) or each.data in (b"{}", *CHUNKS)
        if each == ReceiptFrame(b"{}"):
            assert len(chunks) == 3


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_mutated_bytes(count: int) -> None:
    sample = b"".join([*FRAMES, b": keep-alive\n\n", *TAIL])
    for data in mutants(sample, count):
        check_no_lie(read(data))


ENDLESS = [b"a" * 1000, b"data: a\n" * 500, b"event: zs\ndata: " + b"A" * 997, b": " + b"c" * 500]


@pytest.mark.parametrize("piece", ENDLESS, ids=range(4))
def test_an_event_without_an_end_is_refused_before_it_fills_memory(piece: bytes) -> None:
    reader = StreamReader(AT, limit=10_000)
    for _ in range(30):
        found = reader.feed(piece)
        if found:
            break
    assert found == [Violation("too_large")] and reader.ended


def test_no_key_in_a_repr() -> None:
    assert repr(KEY)[2:-1] not in repr(StreamReader(AT)) + repr(AT)

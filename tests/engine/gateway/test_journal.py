from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from relaydesk.core.access.caller import DEFAULT_CALLER
from relaydesk.core.errors import Fault
from relaydesk.core.events import Event, RequestChanged
from relaydesk.core.gateway.incoming import Incoming
from relaydesk.engine.bus import Bus
from relaydesk.engine.gateway.journal import KEPT, Journal, RequestRecord
from tests.support.clock import FakeClock

BROKEN = Fault("engine_failed", "the engine broke")
GONE = Fault("client_closed", "the client left")


class Desk:
    def __init__(self) -> None:
        self.clock = FakeClock()
        bus = Bus()
        self.events: list[Event] = []
        bus.listen(self.events.append)
        self.journal = Journal(self.clock, bus)

    def open(self, request_id: str = "req_1", model: str = "tiny") -> RequestRecord:
        return self.journal.open(
            request_id, model=model, key="default", route="/v1/chat/completions", stream=True, choices=1
        )


def test_waiting_for_other_models_is_waiting_and_not_loading() -> None:
    desk = Desk()
    record = desk.open()
    desk.clock.advance(3.0)
    record.loading()
    desk.clock.advance(2.0)
    record.loaded()
    desk.clock.advance(0.5)
    record.loading()
    record.prefill()
    view = record.view()
    assert (view.queue_ms, view.load_ms) == (3500, 2000)


def test_waiting_without_a_load_of_its_own() -> None:
    desk = Desk()
    record = desk.open()
    desk.clock.advance(3.0)
    record.loaded()
    desk.clock.advance(0.5)
    record.prefill()
    view = record.view()
    assert (view.queue_ms, view.load_ms) == (3500, 0)


def test_what_never_had_a_model_is_shown_too() -> None:
    desk = Desk()
    desk.journal.refused(Incoming(DEFAULT_CALLER, "/v1/x", "r9"), Fault("invalid_json", "no"))
    (view,) = desk.journal.view().recent
    assert (view.id, view.model, view.status, view.state) == ("r9", "", 400, "failed")
    assert (desk.journal.requests_total, desk.journal.in_flight) == (1, 0)


def test_a_requests_whole_life() -> None:
    desk = Desk()
    record = desk.open()
    assert record.view().state == "queued"
    assert desk.journal.standing() == (0, 1)
    record.loading()
    desk.clock.advance(2.0)
    assert record.view().state == "loading"
    record.loaded()
    desk.clock.advance(0.5)
    record.prefill()
    assert desk.journal.standing() == (1, 0)
    record.progress(100, 400)
    desk.clock.advance(1.0)
    assert record.view().prompt_done == 100
    for _ in range(5):
        record.token()
        desk.clock.advance(0.25)
    assert record.view().state == "generating"
    record.settle(prompt=400, cached=30, completion=6, finish_reasons=["stop"])
    record.finish(200)
    view = desk.journal.find("req_1")
    assert view is not None
    assert (view.load_ms, view.queue_ms, view.first_token_ms, view.total_ms) == (2000, 500, 3500, 4750)
    assert (view.prompt_tokens, view.prompt_done, view.cached_tokens, view.completion_tokens) == (
        400,
        400,
        30,
        6,
    )
    assert (view.state, view.status, view.fault, view.finish_reasons) == ("done", 200, None, ("stop",))
    assert view.tokens_per_s == 4.0
    assert desk.journal.standing() == (0, 0)
    assert (desk.journal.requests_total, desk.journal.tokens_total) == (1, 6)
    assert set(desk.events) == {RequestChanged("req_1")}


@pytest.mark.parametrize(
    ("end", "state", "status"),
    [
        (lambda record: record.finish(200), "done", 200),
        (lambda record: record.finish(502, BROKEN), "failed", 502),
        (lambda record: record.finish(499, GONE), "cancelled", 499),
    ],
)
def test_the_first_end_counts(end: Callable[[RequestRecord], None], state: str, status: int) -> None:
    desk = Desk()
    record = desk.open()
    end(record)
    for again in (lambda: record.finish(200), lambda: record.finish(502, BROKEN), record.loading):
        desk.clock.advance(1)
        again()
    view = desk.journal.find("req_1")
    assert view is not None
    assert (view.state, view.status, view.total_ms) == (state, status, 0)
    assert desk.journal.in_flight == 0
    assert len(desk.journal.view().recent) == 1


def test_the_same_id_twice_stays_two_requests() -> None:
    desk = Desk()
    first, second, third = desk.open(), desk.open(), desk.open()
    assert [each.id for each in (first, second, third)] == ["req_1", "req_1-2", "req_1-3"]
    second.finish(200)
    assert desk.journal.in_flight == 2
    assert desk.open().id == "req_1-2"


def test_only_the_newest_are_kept() -> None:
    desk = Desk()
    for number in range(KEPT + 10):
        desk.open(f"req_{number}").finish(200)
    assert desk.journal.find("req_9") is None
    assert desk.journal.find("req_10") is not None
    shown = desk.journal.view()
    assert shown.in_flight == ()
    assert len(shown.recent) == 100
    assert shown.recent[0].id == f"req_{KEPT + 9}"


def test_counts_by_model() -> None:
    desk = Desk()
    desk.open("a", "one").prefill()
    desk.open("b", "one")
    desk.open("c", "two")
    assert desk.journal.standing("one") == (1, 1)
    assert desk.journal.standing("two") == (0, 1)
    assert desk.journal.standing() == (1, 2)


def test_the_rate_is_that_of_the_last_ten_seconds() -> None:
    desk = Desk()
    record = desk.open()
    for _ in range(100):
        record.token()
        desk.clock.advance(0.05)
    assert desk.journal.tokens_per_s() == 10.0
    desk.clock.advance(4.9)
    assert desk.journal.tokens_per_s() == 10.0
    desk.clock.advance(5.2)
    assert desk.journal.tokens_per_s() == 0.0
    assert desk.journal.tokens_total == 100


async def test_wait_empty() -> None:
    desk = Desk()
    await desk.journal.wait_empty()
    records = [desk.open("a"), desk.open("b")]
    waiting = asyncio.create_task(desk.journal.wait_empty())
    records[0].finish(200)
    await asyncio.sleep(0)
    assert not waiting.done()
    records[1].finish(499, GONE)
    await asyncio.wait_for(waiting, 1)


def test_one_log_line_for_each_request(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    desk = Desk()
    record = desk.open()
    desk.clock.advance(0.5)
    record.finish(502, BROKEN)
    record.finish(200)
    (line,) = [each.getMessage() for each in caplog.records]
    for word in ("req_1", "key=default", "model=tiny", "failed 502", "total_ms=500"):
        assert word in line
    assert "error=engine_failed" in line
    assert "load_ms" not in line

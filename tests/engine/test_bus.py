from __future__ import annotations

import logging

import pytest

from relaydesk.core.events import Event, HealthSampled, KeysChanged, LogWritten
from relaydesk.engine.bus import Bus
from relaydesk.engine.logbook import LogBook


def test_every_listener_hears_every_event_in_order() -> None:
    bus = Bus()
    heard: list[tuple[str, Event]] = []
    bus.listen(lambda event: heard.append(("a", event)))
    bus.listen(lambda event: heard.append(("b", event)))
    first, second = KeysChanged(), HealthSampled()
    bus.publish(first)
    bus.publish(second)
    assert heard == [("a", first), ("b", first), ("a", second), ("b", second)]


def test_a_listener_that_left_hears_nothing() -> None:
    bus = Bus()
    heard: list[Event] = []
    stop = bus.listen(heard.append)
    stop()
    stop()  # leaving twice is no error
    bus.publish(KeysChanged())
    assert heard == []


def test_a_listener_may_leave_while_it_is_told() -> None:
    bus = Bus()
    heard: list[str] = []

    def once(event: Event) -> None:
        heard.append("once")
        stop()

    stop = bus.listen(once)
    bus.listen(lambda event: heard.append("other"))
    bus.publish(KeysChanged())
    bus.publish(KeysChanged())
    assert heard == ["once", "other", "other"]


def test_a_failing_listener_is_logged_and_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    bus = Bus()
    heard: list[Event] = []

    def fail(event: Event) -> None:
        raise RuntimeError("no")

    bus.listen(fail)
    bus.listen(heard.append)
    with caplog.at_level(logging.ERROR):
        bus.publish(KeysChanged())
        bus.publish(KeysChanged())
    assert len(heard) == 2
    assert [record.message for record in caplog.records] == ["a listener failed on KeysChanged"] * 2


def test_a_listener_failing_on_log_lines_is_not_reported_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    # The report is a log line, which is an event, on which the listener fails again.
    bus = Bus()
    book = LogBook()
    book.attach(bus)
    logger = logging.getLogger("relaydesk.engine.bus")
    logger.addHandler(book)

    def fail(event: Event) -> None:
        raise RuntimeError("no")

    bus.listen(fail)
    try:
        with caplog.at_level(logging.ERROR):
            bus.publish(LogWritten())
    finally:
        logger.removeHandler(book)
    assert len(caplog.records) == 1
    assert len(book.view().lines) == 1

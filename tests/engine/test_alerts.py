from __future__ import annotations

import pytest

from relaydesk.core.events import AlertsChanged, Event
from relaydesk.engine.alerts import LIMIT, AlertBoard
from relaydesk.engine.bus import Bus
from tests.support.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def heard() -> list[Event]:
    return []


@pytest.fixture
def board(clock: FakeClock, heard: list[Event]) -> AlertBoard:
    bus = Bus()
    bus.listen(heard.append)
    return AlertBoard(clock, bus)


def test_raised_once_and_cleared(board: AlertBoard, heard: list[Event], clock: FakeClock) -> None:
    board.raise_alert("low_disk", "little space", "free some", severity="error", subject="/var")
    board.raise_alert("low_disk", "little space", "free some", severity="error", subject="/var")
    (alert,) = board.view().alerts
    assert alert.code == "low_disk"
    assert alert.severity == "error"
    assert alert.since_ms == clock.wall_ms()
    board.clear("low_disk", subject="/var")
    board.clear("low_disk", subject="/var")
    assert board.view().alerts == ()
    assert heard == [AlertsChanged(), AlertsChanged()]


def test_new_text_keeps_the_age(board: AlertBoard, heard: list[Event], clock: FakeClock) -> None:
    board.raise_alert("low_disk", "10 MiB", "free some")
    since = clock.wall_ms()
    clock.advance(60)
    board.raise_alert("low_disk", "5 MiB", "free some")
    (alert,) = board.view().alerts
    assert alert.message == "5 MiB"
    assert alert.since_ms == since
    assert len(heard) == 2


def test_subjects_tell_alerts_apart(board: AlertBoard) -> None:
    board.raise_alert("service_failed", "a", "", subject="a")
    board.raise_alert("service_failed", "b", "", subject="b")
    board.clear("service_failed", subject="a")
    board.clear("service_failed")
    assert [alert.subject for alert in board.view().alerts] == ["b"]


def test_text_is_made_safe(board: AlertBoard) -> None:
    board.raise_alert("x", "\x1b]0;x\x07" + "y" * 2000, "\u202ez")
    (alert,) = board.view().alerts
    assert len(alert.message) == 512
    assert alert.message.startswith("]0;xy")
    assert alert.hint == "z"


def test_a_flood_drops_the_oldest(board: AlertBoard) -> None:
    for number in range(LIMIT + 5):
        board.raise_alert("x", "m", "h", subject=str(number))
    alerts = board.view().alerts
    assert len(alerts) == LIMIT
    assert alerts[0].subject == "5"
    assert alerts[-1].subject == str(LIMIT + 4)

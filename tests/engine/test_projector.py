from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.errors import EnvError
from relaydesk.core.events import AlertsChanged, Event, HealthSampled, KeysChanged
from relaydesk.core.view.node_view import SECTIONS
from relaydesk.core.view.sections import AlertsView, HealthView, KeysView, KeyView
from relaydesk.engine.projector import Projector
from tests.support.clock import FakeClock


class Source:
    """State of three services, with how often each section was built."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.keys: tuple[KeyView, ...] = ()
        self.built: Counter[str] = Counter()
        self.error: Exception | None = None

    def health(self) -> HealthView:
        self.built["health"] += 1
        if self.error is not None:
            raise self.error
        return HealthView(in_flight=self.in_flight)

    def key_list(self) -> KeysView:
        self.built["keys"] += 1
        return KeysView(self.keys)

    def alerts(self) -> AlertsView:
        self.built["alerts"] += 1
        return AlertsView()

    def providers(self) -> dict[str, Any]:
        return {"health": self.health, "keys": self.key_list, "alerts": self.alerts}


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def projector(source: Source, clock: FakeClock) -> Projector:
    return Projector(clock, source.providers())


def test_a_section_without_provider_stays_loading(projector: Projector) -> None:
    view = projector.view()
    assert view.health.state == "ready"
    assert view.models.state == "loading"
    projector.take(_ModelsEvent())
    assert projector.view().models.state == "loading"


def test_an_unknown_section_is_our_bug(clock: FakeClock) -> None:
    with pytest.raises(ValueError, match="nonsense"):
        Projector(clock, {"nonsense": list})


def test_nothing_is_built_until_somebody_looks(source: Source, projector: Projector) -> None:
    for _ in range(1000):
        projector.take(HealthSampled())
    assert not source.built
    projector.view()
    projector.view()
    assert source.built == {"health": 1, "keys": 1, "alerts": 1}


def test_only_what_is_asked_and_stale_is_built(source: Source, projector: Projector) -> None:
    projector.view()
    source.in_flight = 5
    source.keys = (KeyView("a", "f", "file"),)
    projector.take(HealthSampled())
    projector.take(KeysChanged())
    view = projector.view(["health"])
    assert view.health.value == HealthView(in_flight=5)
    assert view.keys.value == KeysView()
    assert source.built == {"health": 2, "keys": 1, "alerts": 1}
    assert projector.view().keys.value == KeysView(source.keys)


def test_as_of_is_when_it_was_built(projector: Projector, clock: FakeClock) -> None:
    first = projector.view()
    clock.advance(3)
    projector.take(HealthSampled())
    second = projector.view()
    assert second.health.as_of_ms == first.health.as_of_ms + 3000
    assert second.keys is first.keys
    assert second.seq > first.seq


def test_since_gives_what_changed_after(source: Source, projector: Projector) -> None:
    seq = projector.view().seq
    assert projector.since(seq, SECTIONS) is None
    source.in_flight = 1
    projector.take(HealthSampled())
    projector.take(KeysChanged())
    update = projector.since(seq, ["health", "alerts"])
    assert update is not None
    assert update.health is not None
    assert update.keys is None
    assert update.alerts is None


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (EnvError("storage_failed", "the disk is full", "free some"), "storage_failed", "the disk is full"),
        (RuntimeError("sk-secret-in-a-message"), "internal_error", "the section health could not be built"),
    ],
)
def test_a_failing_provider_keeps_its_last_value_and_hurts_nobody(
    source: Source, projector: Projector, clock: FakeClock, error: Exception, code: str, text: str
) -> None:
    source.in_flight = 4
    good = projector.view().health
    source.error = error
    clock.advance(10)
    projector.take(HealthSampled())
    projector.take(KeysChanged())
    view = projector.view()
    assert view.health.state == "failed"
    assert view.health.value == HealthView(in_flight=4)
    assert view.health.as_of_ms == good.as_of_ms
    assert view.health.fault is not None
    assert view.health.fault.code == code
    assert view.health.fault.message == text
    assert view.keys.state == "ready"
    source.error = None
    projector.take(HealthSampled())
    assert projector.view().health.state == "ready"


class _ModelsEvent(Event):
    section = "models"


# One step: change the state and publish, or let one of three watchers look.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("health"), st.integers(0, 9)),
        st.tuples(st.just("keys"), st.integers(0, 3)),
        st.tuples(st.just("alerts"), st.just(0)),
        st.tuples(st.just("look"), st.integers(0, 2)),
    ),
    max_size=40,
)
TOPICS = (SECTIONS, ("health",), ("keys", "alerts"))


@given(steps)
@settings(max_examples=200, deadline=None)
def test_whoever_applies_all_updates_sees_the_snapshot(sequence: list[tuple[str, int]]) -> None:
    source = Source()
    projector = Projector(FakeClock(), source.providers())
    events = {"health": HealthSampled(), "keys": KeysChanged(), "alerts": AlertsChanged()}
    views = [projector.view(topics) for topics in TOPICS]
    seqs = [view.seq for view in views]

    def look(number: int) -> None:
        update = projector.since(seqs[number], TOPICS[number])
        if update is not None:
            assert update.seq > seqs[number]
            seqs[number] = update.seq
            views[number] = views[number].replaced(update)

    for what, value in sequence:
        if what == "look":
            look(value)
            continue
        if what == "health":
            source.in_flight = value
        elif what == "keys":
            source.keys = tuple(KeyView(f"k{number}", "f", "file") for number in range(value))
        projector.take(events[what])
    for number in range(3):
        look(number)
    truth = projector.view()
    for view, topics in zip(views, TOPICS, strict=True):
        for name in topics:
            assert getattr(view, name) == getattr(truth, name)
    assert truth.health.value == HealthView(in_flight=source.in_flight)
    assert truth.keys.value == KeysView(source.keys)

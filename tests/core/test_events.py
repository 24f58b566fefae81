from __future__ import annotations

import dataclasses

import pytest

from relaydesk.core.events import Event
from relaydesk.core.view.node_view import SECTIONS

KINDS = Event.__subclasses__()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_event_makes_a_section_stale(kind: type[Event]) -> None:
    assert kind.section in SECTIONS
    assert isinstance(kind.notable, bool)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_events_are_values(kind: type[Event]) -> None:
    fields = {field.name: "x" for field in dataclasses.fields(kind)}
    event = kind(**fields)
    assert event == kind(**fields)
    for name in fields:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(event, name, "y")


def test_every_section_has_an_event() -> None:
    assert {kind.section for kind in KINDS} == set(SECTIONS)


def test_what_moves_often_waits_for_the_tick() -> None:
    often = {"ModelProgress", "JobProgress", "RequestChanged", "HealthSampled", "LogWritten"}
    assert not [kind.__name__ for kind in KINDS if kind.notable and kind.__name__ in often]

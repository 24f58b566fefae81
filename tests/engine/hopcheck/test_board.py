from __future__ import annotations

from relaydesk.core.events import Event, HopCheckChanged
from relaydesk.core.hopcheck.decide import decide
from relaydesk.core.hopcheck.probes import probes_of
from relaydesk.core.view.hopcheck import HopScheduleView
from relaydesk.engine.bus import Bus
from relaydesk.engine.clock import SystemRng
from relaydesk.engine.hopcheck.board import Board
from relaydesk.engine.jobs import Job, JobBoard
from tests.support.clock import FakeClock
from tests.support.edge_scenes import NODE, PUBLIC, clean, stripped

LAYERS = (NODE, PUBLIC)
PROBES = {layer.name: probes_of(layer.kind, ()) for layer in LAYERS}


def board() -> tuple[Board, Job, list[Event], FakeClock]:
    clock, bus, heard = FakeClock(), Bus(), []
    bus.listen(heard.append)
    return Board(clock, bus), Job(JobBoard(clock, SystemRng(), bus), "job_1"), heard, clock


def test_a_check_is_seen_from_its_first_probe_to_its_report() -> None:
    made, job, heard, clock = board()
    watching = made.begin(job, PUBLIC.url, long=False, from_node=True, lab=False)
    watching.planned(LAYERS, PROBES)
    view = made.view(LAYERS)
    assert (view.running, view.job, len(view.probes)) == (True, "job_1", sum(map(len, PROBES.values())))
    assert {row.state for row in view.probes} == {"waiting"}
    watching.began(PUBLIC, "refusal")
    assert [row.id for row in made.view(()).probes if row.state == "running"] == ["refusal"]
    seen = {"loopback": clean(NODE), "public": stripped(clean(PUBLIC))}
    for layer in LAYERS:
        for observed in seen[layer.name].values():
            if observed.probe in {probe.id for probe in PROBES[layer.name]}:
                watching.ended(layer, observed)
    view = made.view(())
    assert [(each.code, each.layer) for each in view.findings] == [("marker_removed", "public")]
    assert {row.state for row in view.probes if row.layer == "loopback"} == {"passed", "waiting"}
    clock.advance(3)
    made.end(decide(LAYERS, seen))
    view = made.view(())
    assert not view.running
    assert view.report is not None
    assert (view.report.ok, view.report.took_ms, view.report.url) == (False, 3000, PUBLIC.url)
    assert any(isinstance(each, HopCheckChanged) for each in heard)


def test_a_check_without_a_report_leaves_the_last_one() -> None:
    made, job, _, _ = board()
    made.begin(job, PUBLIC.url, long=True, from_node=True, lab=False)
    made.end(decide(LAYERS, {"loopback": clean(NODE), "public": clean(PUBLIC)}))
    before = made.view(()).report
    made.begin(job, "http://other", long=True, from_node=True, lab=False)
    assert made.view(()).report == before
    made.end(None)
    assert made.view(()).report == before
    assert not made.running


def test_the_schedule_is_told_when_it_changes() -> None:
    made, _, heard, _ = board()
    made.scheduled(HopScheduleView(60.0))
    made.scheduled(HopScheduleView(60.0))
    assert len(heard) == 1
    assert made.view(()).schedule.interval_s == 60.0

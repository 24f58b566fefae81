from __future__ import annotations

import json
from typing import Any

from relaydesk.core.codec import encode, fault_view
from relaydesk.core.errors import Fault
from relaydesk.core.text import safe_text
from relaydesk.core.view.network import RelaysView, RelayView
from relaydesk.core.view.node_view import SECTIONS, NodeView, Update, WorkersView, loading_view
from relaydesk.core.view.sections import (
    Alert,
    AlertsView,
    HealthView,
    MemoryView,
    MetaView,
    ModelsView,
    ModelView,
    Section,
    WorkerView,
)
from relaydesk.core.view.status import status_document

# Design §4: what scripts may count on.
PROMISED = {
    "operator",
    "node",
    "listening",
    "fingerprint",
    "uptime_s",
    "models",
    "workers",
    "members",
    "relays",
    "alerts",
}
START = 1_700_000_000_000


def _ready(value: Any) -> Section[Any]:
    return Section(state="ready", as_of_ms=START, value=value)


def _view() -> NodeView:
    meta = MetaView("desk", "0.1.0", 77, START, "ready", ("https://[::]:8383",), "ab:cd", operator="me")
    model = ModelView("smollm2", "warm", True, safe_text(""), "host", 2048)
    worker = WorkerView("smollm2", "xllamacpp", "ready", "http://127.0.0.1:1", 78, 150, 4, 1)
    alert = Alert("service_failed", "warning", safe_text("x failed"), safe_text("see the log"), START)
    return loading_view(START).replaced(
        Update(
            seq=1,
            meta=_ready(meta),
            models=_ready(ModelsView(MemoryView("ram", 8000, 4000), (model,))),
            workers=_ready(WorkersView((worker,))),
            alerts=_ready(AlertsView((alert,))),
            health=_ready(HealthView(in_flight=2)),
        )
    )


def test_document_of_a_running_node() -> None:
    document = json.loads(encode(status_document(_view(), START + 90_999)))
    assert set(document) >= PROMISED
    assert document["node"] == "desk"
    assert document["operator"] == "me"
    assert document["uptime_s"] == 90
    assert document["listening"] == ["https://[::]:8383"]
    assert document["fingerprint"] == "ab:cd"
    assert document["phase"] == "ready"
    assert document["models"][0]["name"] == "smollm2"
    assert document["memory"]["free_mib"] == 4000
    worker = document["workers"][0]
    assert {key: worker[key] for key in ("model", "pid", "url", "memory_mb")} == {
        "model": "smollm2",
        "pid": 78,
        "url": "http://127.0.0.1:1",
        "memory_mb": 150,
    }
    assert document["alerts"][0]["code"] == "service_failed"
    assert document["members"] == document["relays"] == []
    assert document["health"]["in_flight"] == 2
    assert document["incomplete"] == [
        "requests",
        "keys",
        "log",
        "jobs",
        "network",
        "relays",
        "hops",
        "ledger",
        "hopcheck",
    ]


def test_relays_in_short() -> None:
    relay = RelayView(
        "1:1",
        "O",
        safe_text("https://n.example"),
        "eligible",
        tier="demoted",
        faults=3,
        rtt_ms=12.5,
        share=0.2,
    )
    document = status_document(_view().replaced(Update(seq=2, relays=_ready(RelaysView((relay,))))), START)
    (found,) = document["relays"]
    assert (found["ref"], found["tier"], found["faults"], found["fault_limit"]) == ("1:1", "demoted", 3, 3)
    assert (found["rtt_ms"], found["share"], found["url"]) == (12.5, 0.2, "https://n.example")
    assert not {"evidence", "history"} & set(found)


def test_document_before_anything_is_known() -> None:
    document = json.loads(encode(status_document(loading_view(START), START + 5000)))
    assert set(document) >= PROMISED
    assert document["phase"] == "starting"
    assert document["uptime_s"] == 0
    assert document["models"] == document["workers"] == document["alerts"] == []
    assert document["memory"] is None
    assert document["incomplete"] == list(SECTIONS)


def test_a_failed_section_shows_its_last_value_and_says_so() -> None:
    view = _view()
    broken = Section(
        state="failed",
        as_of_ms=START,
        value=view.models.value,
        fault=fault_view(Fault("internal_error", "it could not be built")),
    )
    document = status_document(view.replaced(Update(seq=2, models=broken)), START)
    assert [model["name"] for model in document["models"]] == ["smollm2"]
    assert "models" in document["incomplete"]


def test_a_clock_set_back_gives_no_negative_uptime() -> None:
    assert status_document(_view(), START - 1)["uptime_s"] == 0

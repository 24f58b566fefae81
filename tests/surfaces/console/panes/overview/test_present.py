"""The picture of a node."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from relaydesk.core.text import safe_text
from relaydesk.core.view.node_view import NodeView, Update, loading_view
from relaydesk.core.view.sections import AlertsView, HealthView, JobsView, MemoryView, ModelsView, Section
from relaydesk.surfaces.console.panes.overview import present
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.scenes import EMPTY, PULL, busy, hostile, texts
from tests.surfaces.console.stage import NOW_MS, sample

QUIET = {"alerts": AlertsView()}


def view_of(values: dict[str, Any]) -> NodeView:
    ready = {name: Section("ready", NOW_MS, value) for name, value in values.items()}
    return loading_view(NOW_MS).replaced(Update(1, **ready))


def _picture(
    values: dict[str, Any], width: int, height: int, history: tuple[float, ...] = (1.0, 2.0)
) -> list[str]:
    return texts(present.picture(view_of(values), values["models"], history, NOW_MS, width, height))


def test_the_way_of_a_request_from_left_to_right() -> None:
    lines = _picture(sample(), 78, 21)
    assert lines[:6] == [
        "╭ Clients ──────╮   ╭ Hub ────────────────╮   ╭ Host ────────────────────────╮",
        "│ ◐ default 2   │──▸│ localhost:8383 TLS  │──▸│ 9214 MiB free of 15.4 GiB    │",
        "│ 128 requests  │   │ 2 running +1 queued │   │ ● smollm2    2/4 +1          │",
        "│ 40.2 k tokens │   │ 42 tokens/s         │   │ ✗ qwen3-32b  unavailable     │",
        "│               │   │ loop lag 1 ms       │   │                              │",
        "╰───────────────╯   ╰─────────────────────╯   ╰──────────────────────────────╯",
    ]


def test_wide_ones_have_a_box_of_models_and_narrow_ones_no_boxes() -> None:
    assert _picture(sample(), 118, 30)[0].count("╭") == 4
    narrow = _picture(sample(), 58, 13)
    assert narrow[0] == "Clients  default 2  128 requests since start"
    assert not any("╭" in line for line in narrow)


def test_the_network_has_a_line_where_there_is_room_and_it_is_on() -> None:
    values = busy()
    line = "Network   ● published   ● 12 of 16 relays   ▲ 2 demoted   3/256 circuits"
    assert line in _picture(values, 78, 21)
    assert not any(text.startswith("Network") for text in _picture(values, 58, 13))
    assert not any(text.startswith("Network") for text in _picture(sample(), 78, 21))
    out = msgspec.structs.replace(values["network"], problem=safe_text("port 8384 is taken"))
    assert any(
        text.startswith("Network   ✗ not up: port 8384")
        for text in _picture(values | {"network": out}, 78, 21)
    )


def test_alerts_come_with_their_next_step() -> None:
    lines = _picture(sample(), 78, 21)
    at = lines.index("Alerts")
    assert lines[at + 1 : at + 3] == [
        "▲ certificates failed: the disk is full. Since 1 min.",
        "  Next: make room; it is tried again in 60 s.",
    ]


def test_a_node_that_only_relays_shows_its_network_and_its_alerts() -> None:
    values = busy() | {"models": EMPTY["models"], "jobs": JobsView()}
    for width, height in ((78, 21), (58, 13), (118, 33)):
        assert present.empty(view_of(values)) is None
        lines = _picture(values, width, height)[:height]
        assert any(text.startswith("Network   ● published") for text in lines)
        assert any("No model is registered yet." in text for text in lines)
        assert "Alerts" in lines
        assert any(text.startswith("  Next: ") for text in lines)
    # An alert alone is reason enough for the picture, and so is a network.
    for name in ("alerts", "network"):
        assert present.empty(view_of(sample() | EMPTY | QUIET | {name: values[name]})) is None


def test_a_first_model_on_its_way_is_said_once() -> None:
    lines = _picture(busy() | {"models": EMPTY["models"], "jobs": JobsView((PULL,))}, 78, 21)
    assert sum("40 %" in text for text in lines) == 1


def test_memory_adds_up() -> None:
    values = sample()
    values["models"] = msgspec.structs.replace(values["models"], memory=MemoryView("ram", 1000, 300))
    lines = texts(present.memory_lines(view_of(values), values["models"], 60))
    assert lines[0] == "Memory  1000 MiB RAM".ljust(48) + "300 MiB free"
    # 243 of the model, 457 of others, 300 free.
    assert (lines[1].count("█"), lines[1].count("▓"), lines[1].count("·")) == (15, 27, 18)
    assert "smollm2" in lines[2]
    assert "457 MiB" in lines[2]


def test_on_a_gpu_a_workers_ram_does_not_count() -> None:
    values = sample()
    models = msgspec.structs.replace(values["models"], memory=MemoryView("gpu", 1000, 300))
    need = msgspec.structs.replace(models.models[0], need_mib=600)
    models = msgspec.structs.replace(models, models=(need,))
    assert present.holders(view_of(values), models) == [("smollm2", 600)]


def test_many_loaded_models_are_counted_together() -> None:
    values = sample()
    base = values["models"].models[0]
    many = tuple(msgspec.structs.replace(base, name=f"m{at}", need_mib=10 * at) for at in range(1, 8))
    held = present.holders(
        view_of(values | {"workers": EMPTY["workers"]}), ModelsView(MemoryView("ram", 999, 1), many)
    )
    assert held == [("m7", 70), ("m6", 60), ("5 other models", 150)]


def test_more_models_than_lines_are_counted() -> None:
    lines = texts(present.flow_lines(view_of(busy()), busy()["models"], 58, 3))
    assert [line.strip() for line in lines[-3:]] == [
        "● smollm2                2/4 slots +1 queued",
        "◐ llama-3.2-3b-instruct  loading 41%",
        "and 2 more: 2 lists them",
    ]


def test_a_busy_loop_is_marked_by_a_symbol_too() -> None:
    for lag, said in ((3.0, "loop lag 3 ms"), (40.0, "▲ loop lag 40 ms"), (400.0, "✗ loop lag 400 ms")):
        values = sample() | {"health": HealthView(loop_lag_p99_ms=lag)}
        assert said in "\n".join(_picture(values, 78, 21))


def test_the_first_step_where_there_is_no_model() -> None:
    notice = present.empty(view_of(sample() | EMPTY | QUIET))
    assert notice is not None
    assert notice.sentence == "No model is registered yet."
    assert notice.action.startswith("a pulls smollm2")
    under_way = present.empty(view_of(sample() | EMPTY | QUIET | {"jobs": JobsView((PULL,))}))
    assert under_way is not None
    assert "pull smollm2: downloading, 40 %, 12.0 MiB/s." in under_way.sentence
    assert present.empty(view_of(sample())) is None
    assert present.empty(loading_view(NOW_MS)) is None


def test_what_is_not_known_yet_leaves_no_box_empty() -> None:
    models = sample()["models"]
    lines = texts(present.picture(loading_view(NOW_MS), models, (), NOW_MS, 78, 21))
    assert "nobody asks" in lines[1]
    assert "not listening yet" in lines[1]


@pytest.mark.parametrize(
    "values", [sample(), busy(), hostile(), sample() | EMPTY], ids=["sample", "busy", "hostile", "empty"]
)
@pytest.mark.parametrize("width", [58, 76, 78, 109, 110, 118, 200])
@pytest.mark.parametrize("height", [13, 21, 31])
def test_nothing_is_wider_than_the_screen(values: dict[str, Any], width: int, height: int) -> None:
    lines = present.picture(view_of(values), values["models"], (1.0, None, 3.0), NOW_MS, width, height)
    # A widget cuts names; what stands in boxes and sentences must fit by itself.
    assert all(line_width(line) <= width for line in lines if line and line[0].text[:1] in "╭│╰▲✗")

"""Models as rows, and one of them as a detail."""

from __future__ import annotations

import msgspec
import pytest

from relaydesk.core.text import SafeText, safe_text
from relaydesk.core.view.sections import JobsView, ModelsView, ModelView
from relaydesk.surfaces.console.panes.models import present
from relaydesk.surfaces.console.widgets.spans import line_width
from tests.surfaces.console.panes.scenes import LOAD_FAILED, PULL, REPORTS, busy, hostile, texts

MODELS: ModelsView = busy()["models"]
WARM, UNFIT, COLD, LOADING = MODELS.models


def test_rows() -> None:
    plain = ModelsView(
        MODELS.memory, tuple(msgspec.structs.replace(each, offer=False) for each in MODELS.models)
    )
    assert [[cell.text for cell in row.cells] for row in present.rows(plain)] == [
        ["smollm2", "● warm", "243 MiB", "2048", "4", "2", "1", "Q4_1", "–", ""],
        ["qwen3-32b", "✗ unavailable", "21.3 GiB", "8192", "1", "0", "0", "Q4_K_M", "–", ""],
        ["gemma-3-270m", "○ cold", "611 MiB", "4096", "4", "0", "0", "Q8_0", "15 min", COLD.source],
        [
            "llama-3.2-3b-instruct",
            "◐ loading 41%",
            "2870 MiB",
            "4096",
            "2",
            "0",
            "0",
            "Q4_K_M",
            "always",
            "",
        ],
    ]


def test_for_ever_sorts_above_any_time() -> None:
    at = [column.key for column in present.WITH_NETWORK].index("kept")
    kept = [row.cells[at].sort for row in present.rows(MODELS)]
    assert sorted(kept, key=float) == [0.0, 0.0, 900.0, float("inf")]


def test_below_the_list_the_selected_model_in_a_sentence() -> None:
    said = [" ".join("".join(texts(present.why(model, 200))).split()) for model in MODELS.models]
    assert said == [
        "● smollm2 is loaded, 2 of 4 slots in use.",
        "✗ qwen3-32b: needs 21840 MiB, and 15800 MiB is all there is. Enter says what would help.",
        "○ gemma-3-270m is loaded by the first request for it, or by l.",
        "◐ llama-3.2-3b-instruct is being loaded.",
    ]
    waits = msgspec.structs.replace(
        COLD, fit_reason=safe_text("it will be loaded once models in use fall idle")
    )
    assert texts(present.why(waits, 200))[0].startswith("○ gemma-3-270m: it will be loaded once")
    named = msgspec.structs.replace(UNFIT, fit_reason=safe_text('"qwen3-32b" is too large'))
    assert texts(present.why(named, 200))[0].startswith('✗ "qwen3-32b" is too large.')


def test_a_detail_is_state_report_and_facts() -> None:
    lines = texts(present.detail(UNFIT, REPORTS["qwen3-32b"], 60))
    assert lines[0] == "✗ qwen3-32b  unavailable"
    assert lines[2].startswith("✗ can never fit here")
    assert "file        qwen3 Q4_K_M, 18.4 GiB" in lines


def test_a_failed_load_comes_before_the_report() -> None:
    failed = msgspec.structs.replace(UNFIT, fault=LOAD_FAILED)
    lines = texts(present.detail(failed, REPORTS["qwen3-32b"], 60))
    assert lines[2:4] == ["✗ the engine ended while it loaded qwen3-32b.", "  Next: see the log."]


def test_without_a_report_it_says_why_there_is_none() -> None:
    assert "◐ What it needs is being worked out." in texts(present.detail(COLD, None, 60))
    assert "✗ the engine ended while it loaded qwen3-32b." in texts(present.detail(COLD, LOAD_FAILED, 60))
    far = msgspec.structs.replace(COLD, kind="url")
    assert "○ It runs on another server and needs no memory here." in texts(present.detail(far, None, 60))


def test_the_empty_pane_says_what_to_do_how_far_it_is_and_what_failed() -> None:
    assert present.empty(None, "a pulls").sentence == "No model is registered yet."
    assert "downloading, 40 %" in present.empty(JobsView((PULL,)), "a pulls").sentence
    failed = msgspec.structs.replace(PULL, state="failed", fault=LOAD_FAILED)
    notice = present.empty(JobsView((failed,)), "a pulls")
    assert notice.sentence == "pull smollm2: the engine ended while it loaded qwen3-32b. see the log."
    assert notice.action == "a pulls"


def test_find() -> None:
    assert present.find(MODELS, "smollm2") is WARM
    assert present.find(MODELS, "nobody") is None
    assert present.find(None, "smollm2") is None


@pytest.mark.parametrize("width", [38, 56, 78])
def test_no_line_is_wider_than_the_detail(width: int) -> None:
    for model in (*MODELS.models, *hostile()["models"].models):
        lines = (*present.detail(model, REPORTS.get(model.name), width), *present.why(model, width))
        # The first is the name, which whoever draws it cuts.
        assert all(line_width(line) <= width for line in lines[1:])


@pytest.mark.parametrize(("seconds", "text"), [(-1, "-1"), (0, "0"), (900, "15m"), (5400, "1h30m")])
def test_how_long_it_is_kept_as_it_is_typed(seconds: int, text: str) -> None:
    assert present.keep_alive(seconds) == text


def test_removing_says_of_this_model_what_is_deleted() -> None:
    ours = ModelView(
        "a", "cold", True, SafeText(""), "host", 1, source=SafeText("hf:o/r"), owned=True, size_bytes=2**20
    )
    assert present.removal(ours) == "the registration and the file (1.0 MiB) that relaydesk fetched as hf:o/r"
    added = msgspec.structs.replace(ours, owned=False, source=SafeText("/m/x.gguf"))
    assert present.removal(added) == "the registration; its file stays where it is: /m/x.gguf"
    assert "its server is left alone" in present.removal(msgspec.structs.replace(ours, kind="url"))

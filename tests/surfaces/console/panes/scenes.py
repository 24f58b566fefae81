"""What the panes are shown in tests: fit reports, states, and text of somebody who means harm."""

from __future__ import annotations

from typing import Any

import msgspec

from relaydesk.core.access.audit import AuditRecord
from relaydesk.core.errors import EnvError
from relaydesk.core.pool.fit import FitReport
from relaydesk.core.pool.need import Component
from relaydesk.core.pool.suggest import Suggestion
from relaydesk.core.text import safe_text
from relaydesk.core.view.ledger import LedgerView
from relaydesk.core.view.network import HopsView, NetworkView, RelaysView
from relaydesk.core.view.node_view import WorkersView
from relaydesk.core.view.sections import (
    Alert,
    AlertsView,
    FaultView,
    JobsView,
    JobView,
    KeysView,
    KeyView,
    MemoryView,
    ModelsView,
    ModelView,
    RequestsView,
    RequestView,
    WorkerView,
)
from relaydesk.surfaces.console.widgets.spans import Line, line_text
from tests.contract.rigs import HOSTILE
from tests.surfaces.console.panes.network_scenes import hostile_sections, sections
from tests.surfaces.console.stage import NOW_MS, sample

SIZES = ((60, 16), (80, 24), (120, 36))
FITS = FitReport(
    model="smollm2",
    fits=True,
    ever_fits=True,
    constraint="",
    reason='"smollm2" needs 243 MiB and 9214 MiB are free',
    components=(
        Component("weights", 94),
        Component("kv", 90),
        Component("compute", 27),
        Component("overhead", 16),
        Component("margin", 16),
    ),
    need_mib=243,
    free_mib=9214,
    total_mib=15_800,
    ctx=2048,
    slots=4,
    measured=True,
)
TOO_LARGE = FitReport(
    model="qwen3-32b",
    fits=False,
    ever_fits=False,
    constraint="total",
    reason='"qwen3-32b" needs 21840 MiB, more than the 15800 MiB there are in all',
    components=(
        Component("weights", 18_847),
        Component("kv", 2_048),
        Component("compute", 305),
        Component("overhead", 320),
        Component("margin", 320),
    ),
    need_mib=21_840,
    free_mib=9214,
    total_mib=15_800,
    ctx=8192,
    slots=1,
    suggestion=Suggestion(
        change="memory",
        sentence="add 6040 MiB of memory, or pick a smaller or more quantised model",
        ctx=8192,
        slots=1,
        kv_k="f16",
        kv_v="f16",
        more_mib=6040,
        need_mib=21_840,
    ),
)
# Settings would help this one.
LONG = msgspec.structs.replace(
    TOO_LARGE,
    model="smollm2-long",
    settings_help=True,
    reason='"smollm2-long" needs 1679 MiB, more than the 700 MiB there are in all',
    components=(
        Component("weights", 93),
        Component("kv", 1440),
        Component("compute", 30),
        Component("margin", 116),
    ),
    need_mib=1679,
    free_mib=157,
    total_mib=700,
    slots=8,
    suggestion=Suggestion(
        change="slots",
        sentence="answer at most 2 requests at once (now 8): it then needs 543 MiB and fits",
        ctx=8192,
        slots=2,
        kv_k="f16",
        kv_v="f16",
        need_mib=543,
    ),
)
REPORTS = {report.model: report for report in (FITS, TOO_LARGE, LONG)}
# What each pane is about, an empty one, and the error of one that cannot be read.
# Three named keys: one in use, one that has used up its day, one that stands in a URL.
DAY_MS = 86_400_000
KEYS = KeysView(
    (
        KeyView("default", "1b9e4f07", "state directory", NOW_MS - DAY_MS, used=40_213, running=1),
        KeyView(
            "ann", "7a365f58", "key add", NOW_MS - 20 * DAY_MS, 200_000, 2, 20, ("smollm2",),
            NOW_MS + 30 * DAY_MS, used=91_300, reserved=24_576, running=1, minute_used=4,
        ),
        KeyView(
            "nightly-batch", "8622ffad", "key add", NOW_MS - 3 * DAY_MS, 50_000, 0, 0, (),
            NOW_MS + 3 * DAY_MS, used=50_000,
        ),
        KeyView(
            "tool", "c7b2025f", "key add", NOW_MS - 60_000, 0, 4, 0, ("smollm2", "gemma-3-270m"), 0, True,
        ),
    )
)  # fmt: skip
TODAY = NOW_MS // DAY_MS
USAGE = {
    "name": "ann",
    "days": [
        {
            "day": TODAY - back,
            "requests": back + 1,
            "prompt_tokens": 1,
            "completion_tokens": 1,
            "tokens": tokens,
        }
        for back, tokens in (
            (26, 20_000),
            (12, 61_000),
            (11, 140_000),
            (5, 35_500),
            (1, 180_250),
            (0, 90_000),
        )
    ],
}
AUDIT = tuple(
    AuditRecord(
        at_ms=NOW_MS - 7_000 * at, id=f"req_{at:04d}", key=key, key_id="7a365f587c17db58",
        route="/v1/chat/completions", outcome=outcome, status=status, client="192.0.2.7", model=model,
        placement="host" if model else "", machines=("host",) if model else (), stream=True, code=code,
        prompt_tokens=91 if model else 0, completion_tokens=46 if model else 0, total_ms=2_400 - 600 * at,
    )
    for at, (key, model, outcome, status, code) in enumerate(
        (
            ("ann", "smollm2", "done", 200, ""),
            ("ann", "", "refused", 429, "tokens_per_day_exceeded"),
            ("default", "smollm2", "cancelled", 499, "client_closed"),
            ("tool", "smollm2", "failed", 503, "model_load_failed"),
        )
    )
)  # fmt: skip
MAIN = {
    "overview": "models",
    "models": "models",
    "requests": "requests",
    "keys": "keys",
    "relays": "relays",
    "hops": "hops",
    "ledger": "ledger",
}
EMPTY: dict[str, Any] = {
    "models": ModelsView(MemoryView("ram", 15_800, 9_457)),
    "workers": WorkersView(),
    "requests": RequestsView(),
    "keys": KeysView(),
    "network": NetworkView(),
    "relays": RelaysView(),
    "hops": HopsView(),
    "ledger": LedgerView(),
}
FAILED = EnvError("storage_failed", "the database cannot be read: the disk is full", "make room on the disk")
PULL = JobView(
    "job_1", "pull", "smollm2", "running", NOW_MS - 4_000, 39_344_973, 98_362_432, 12_582_912,
    safe_text("downloading"),
)  # fmt: skip
LOAD_FAILED = FaultView(
    "model_load_failed", safe_text("the engine ended while it loaded qwen3-32b"), safe_text("see the log")
)
FAILURE = RequestView(
    "req_01hq5", "qwen3-32b", "default", "/v1/chat/completions", False, "failed", NOW_MS - 90_000,
    total_ms=31, status=503,
    fault=FaultView(
        "model_unavailable",
        safe_text('"qwen3-32b" needs 21840 MiB, more than the 15800 MiB there are in all'),
        safe_text("`relaydesk model fit qwen3-32b` says what would help"),
    ),
)  # fmt: skip


def busy() -> dict[str, Any]:
    """The sample with a failure, a second loaded model and a pull."""
    values = sample()
    models = values["models"]
    cold = ModelView(
        "gemma-3-270m", "cold", True, safe_text(""), "host", 4096, slots=4, need_mib=611,
        size_bytes=291_549_664, quantization=safe_text("Q8_0"), architecture=safe_text("gemma3"),
        keep_alive_s=900, source=safe_text("hf:ggml-org/gemma-3-270m-it-GGUF"),
    )  # fmt: skip
    loading = ModelView(
        "llama-3.2-3b-instruct", "loading", True, safe_text(""), "host", 4096, progress=0.41, slots=2,
        need_mib=2_870, quantization=safe_text("Q4_K_M"), architecture=safe_text("llama"), keep_alive_s=-1,
    )  # fmt: skip
    # One is offered and loaded, one is to be offered and is not loaded.
    warm, *others = models.models
    warm = msgspec.structs.replace(warm, offer=True, input_rate=70_000, output_rate=200_000)
    cold = msgspec.structs.replace(
        cold, offer=True, unoffered=safe_text("it is not loaded: strangers never load a model")
    )
    values["models"] = msgspec.structs.replace(models, models=(warm, *others, cold, loading))
    values["jobs"] = JobsView((PULL,))
    values["keys"] = KEYS
    values |= sections(NOW_MS)
    requests = values["requests"]
    values["requests"] = msgspec.structs.replace(requests, recent=(*requests.recent, FAILURE))
    return values


def hostile() -> dict[str, Any]:
    """Every text that somebody else has a say in, as the node makes it safe; names even worse."""
    values = sample()
    bad = [safe_text(text, 10_000) for text in HOSTILE] + [safe_text("x" * 10_000, 10_000)]
    fault = FaultView("engine_failed", bad[0], bad[4])
    models = tuple(
        ModelView(
            text or "?", "unavailable", False, bad[at], "host", 2048, aliases=(str(bad[4]),), slots=4,
            need_mib=100, quantization=bad[at], architecture=bad[-at], source=bad[at], fault=fault,
        )
        for at, text in enumerate(HOSTILE)
    )  # fmt: skip
    requests = tuple(
        RequestView(
            text, text, text, text, True, "failed", NOW_MS, total_ms=10, prompt_tokens=1,
            finish_reasons=(text,), fault=fault,
        )
        for text in HOSTILE
    )  # fmt: skip
    return (
        values
        | hostile_sections(NOW_MS)
        | {
            "models": ModelsView(MemoryView(HOSTILE[4], 1000, 100, (bad[0],)), models),
            "workers": WorkersView(tuple(WorkerView(text, "x", text, text, 1, 50) for text in HOSTILE)),
            "requests": RequestsView(requests[:4], requests[4:]),
            "keys": KeysView(
                tuple(
                    KeyView(text, text, text, NOW_MS, 10, 10, 10, (text, text), NOW_MS + at, used=7)
                    for at, text in enumerate(HOSTILE)
                )
            ),
            "alerts": AlertsView(tuple(Alert("x", "error", text, text, NOW_MS) for text in bad[:3])),
            "jobs": JobsView(
                tuple(JobView(text, "pull", text, "running", NOW_MS, note=bad[1]) for text in HOSTILE)
            ),
        }
    )


def hostile_audit() -> tuple[AuditRecord, ...]:
    """Records in which every text is somebody else's."""
    return tuple(
        AuditRecord(
            at_ms=NOW_MS, id=text, key=text, key_id=text, route=text, outcome=text, status=200, client=text,
            model=text, placement=text, machines=(text, text), code=text,
        )
        for text in HOSTILE
    )  # fmt: skip


def texts(lines: tuple[Line, ...]) -> list[str]:
    """What lines say, without trailing blanks."""
    return [line_text(line).rstrip() for line in lines]

"""Where a request's time went: parts that add up, for requests that ended, failed or still run."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.core.text import SafeText
from relaydesk.core.view.sections import FaultView, RequestView
from relaydesk.core.view.timing import NAMES, parts

BASE = RequestView("r", "tiny", "default", "/v1/chat/completions", True, "done", 1_000)


def view(**changes: Any) -> RequestView:
    return msgspec.structs.replace(BASE, **changes)


def ms(found: RequestView, now_ms: int = 0) -> list[int | None]:
    return [part.ms for part in parts(found, now_ms).parts]


def test_a_cold_request() -> None:
    found = view(
        load_ms=2_000, queue_ms=30, first_token_ms=2_530, total_ms=4_530, prompt_tokens=120, cached_tokens=20,
        completion_tokens=41, tokens_per_s=20.0, status=200,
    )  # fmt: skip
    timing = parts(found)
    assert ms(found) == [30, 2_000, 500, 2_000]
    assert (timing.total_ms, timing.loaded, timing.running) == (4_530, False, False)
    prompt, answer = timing.parts[2:]
    assert (prompt.tokens, prompt.cached, prompt.tokens_per_s) == (120, 20, 200.0)
    assert (answer.tokens, answer.tokens_per_s) == (41, 20.0)
    assert timing.largest == "load"


def test_a_warm_request_has_no_load() -> None:
    timing = parts(view(queue_ms=0, first_token_ms=80, total_ms=900))
    assert [part.ms for part in timing.parts] == [0, None, 80, 820]
    assert timing.loaded
    assert timing.largest == "answer"


def test_one_that_still_runs_counts_to_now() -> None:
    assert ms(view(state="queued"), 1_400) == [400, None, None, None]
    assert ms(view(state="loading"), 4_000) == [None, 3_000, None, None]
    prefill = view(state="prefill", load_ms=100, queue_ms=50, prompt_tokens=900, prompt_done=300)
    reading = parts(prefill, 1_750)
    assert [part.ms for part in reading.parts] == [50, 100, 600, None]
    assert [part.name for part in reading.parts if part.open] == ["prompt"]
    assert (reading.parts[2].tokens, reading.parts[2].tokens_per_s) == (300, 500.0)
    writing = view(state="generating", queue_ms=0, first_token_ms=100, completion_tokens=5, tokens_per_s=9.0)
    assert ms(writing, 1_600) == [0, None, 100, 500]


def test_one_that_ended_early_gives_the_rest_to_where_it_stood() -> None:
    failed = FaultView("model_load_failed", SafeText("x"))
    assert ms(view(state="failed", total_ms=700, fault=failed)) == [None, 700, None, None]
    gone = FaultView("client_closed", SafeText("x"))
    assert ms(view(state="cancelled", total_ms=700, fault=gone)) == [700, None, None, None]
    assert ms(view(state="cancelled", load_ms=200, total_ms=700, fault=gone)) == [500, 200, None, None]
    assert ms(view(state="cancelled", queue_ms=10, total_ms=700, fault=gone)) == [10, None, 690, None]


def test_nothing_took_any_time() -> None:
    assert parts(view(total_ms=0)).largest is None


_MARK = st.none() | st.integers(0, 5_000)


@settings(max_examples=200, deadline=None)
@given(
    _MARK, _MARK, _MARK, _MARK, st.sampled_from(["queued", "loading", "prefill", "done"]),
    st.integers(0, 9_000),
)  # fmt: skip
def test_parts_always_add_up(
    load: int | None, queue: int | None, first: int | None, total: int | None, state: Any, now_ms: int
) -> None:
    found = view(state=state, load_ms=load, queue_ms=queue, first_token_ms=first, total_ms=total)
    timing = parts(found, now_ms)
    assert [part.name for part in timing.parts] == list(NAMES)
    assert all(part.ms is None or part.ms >= 0 for part in timing.parts)
    assert sum(part.ms or 0 for part in timing.parts) == timing.total_ms
    if total is not None:
        assert timing.total_ms == total

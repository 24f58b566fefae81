from __future__ import annotations

import pytest

from relaydesk.core.text import safe_text
from relaydesk.engine.infer.loadcause import explain_failure
from relaydesk.engine.infer.worker import WorkerExit


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            [
                "failed to allocate CPU buffer of size 921611796480",
                "failed to initialize the context: failed to allocate buffer for kv cache",
                "exiting due to model loading error",
            ],
            "there is not enough memory, CPU has no 878918 MiB left",
        ),
        (["terminate called after throwing an instance of 'std::bad_alloc'"], "there is not enough memory"),
        (["insufficient memory (attempted to allocate 878918.00 MB)"], "there is not enough memory"),
        (["CUDA error: out of memory"], "there is not enough memory"),
        (
            ["error loading model: unknown model architecture: 'zz{0}'", "failed to load model"],
            "this engine does not know the architecture 'zz{0}'",
        ),
        (
            ["invalid magic characters: 'hell', expected 'GGUF'", "error loading model: failed to load x"],
            "the file is not a GGUF file",
        ),
        (
            ["failed to open GGUF file 'm.gguf' (No such file or directory)", "failed to load model"],
            "the file cannot be opened (No such file or directory)",
        ),
        (["failed to load model", "error loading model: tensor 'a' is short"], "tensor 'a' is short"),
        (
            ["couldn't bind HTTP server socket, hostname: x, port: 0"],
            "the engine's socket could not be opened",
        ),
    ],
)
def test_the_most_telling_line_is_the_cause(lines: list[str], reason: str) -> None:
    for order in (lines, lines[::-1]):
        cause = explain_failure(order)
        assert cause is not None
        assert cause.reason == reason
        assert cause.hint


def test_a_log_that_tells_nothing_has_no_cause() -> None:
    assert explain_failure(["model loaded", ""]) is None


def test_an_engine_that_ended_for_want_of_memory_says_so() -> None:
    said = (safe_text("terminate called after throwing an instance of 'std::bad_alloc'"),)
    assert WorkerExit(1, -6, False, said).reason.startswith("it ran out of memory (SIGABRT): ")
    assert WorkerExit(1, -6, False, ()).reason == "it was ended by SIGABRT"

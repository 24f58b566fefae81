"""The engine is tried in a child, so that what is wrong with it is a sentence."""

from __future__ import annotations

import pytest

from relaydesk.engine.doctor import engine_check


@pytest.mark.engine
def test_the_installed_engine_starts() -> None:
    first = engine_check.check_engine()[0]
    assert (first.name, first.level) == ("engine", "ok")
    assert first.message.startswith("xllamacpp ")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_engine", "No module named 'no_such_engine'"),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGILL)",
            "signal 4: this build does not run on this",
        ),
        ("raise SystemExit(7)", "exit code 7"),
        ("print('\\x1b[2Jhello')", "exit code 0"),
        ("print([])", "it printed something else"),
    ],
)
def test_an_engine_that_does_not(monkeypatch: pytest.MonkeyPatch, code: str, reason: str) -> None:
    monkeypatch.setattr(engine_check, "_ASK", code)
    (finding,) = engine_check.check_engine()
    assert finding.level == "fail"
    assert reason in finding.message
    assert "\x1b" not in finding.message
    assert finding.hint.endswith("-m pip install --force-reinstall xllamacpp`")


def test_one_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_check, "_ASK", "import time; time.sleep(60)")
    monkeypatch.setattr(engine_check, "_TIMEOUT_S", 0.3)
    assert "did not answer within" in engine_check.check_engine()[0].message


def test_no_secret_of_ours_reaches_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_API_KEY", "secret")
    monkeypatch.setattr(
        engine_check, "_ASK", "import os; print({'RELAY_API_KEY': '\"leaked\"'}.get(*['RELAY_API_KEY'] * 1)"
        " if 'RELAY_API_KEY' in os.environ else '{\"version\": \"1\"}')"
    )  # fmt: skip
    assert engine_check.check_engine()[0].message == "xllamacpp 1 starts"

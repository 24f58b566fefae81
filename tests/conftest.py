"""Fixtures every test may use: a real model, and an environment that is nobody's."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest

# The same examples in every run, so that a run says something about the change and not about luck.
# HYPOTHESIS_PROFILE=explore looks for new ones.
hypothesis.settings.register_profile("steady", derandomize=True, database=None)
hypothesis.settings.register_profile("explore")
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

# Colour and the operator's own settings must not change what a test sees.
for _name in [name for name in os.environ if name.startswith("RELAY_")] + ["NO_COLOR", "FORCE_COLOR"]:
    os.environ.pop(_name, None)


def _is_the_model(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == MODEL_SHA256


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """A real small model: fetched once through the program's own pull, then kept in the user's cache."""
    given = os.environ.get("RELAYDESK_TEST_MODEL")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relaydesk" / "models"
    places = [Path(given)] if given else sorted(cache.rglob(MODEL_FILE))
    for place in places:
        if _is_the_model(place):
            return place
    cache.mkdir(parents=True, exist_ok=True)
    code = (
        "import asyncio, sys, pathlib\n"
        "from relaydesk.engine.clock import SystemClock\n"
        "from relaydesk.engine.pull.service import PullService\n"
        "async def main():\n"
        "    print((await PullService(pathlib.Path(sys.argv[1]), SystemClock()).pull('smollm2')).path)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(cache)], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"the test model cannot be fetched: {done.stderr.strip().rpartition(chr(10))[2]}")
    return Path(done.stdout.strip())


@pytest.fixture(autouse=True)
def _own_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the settings, state or runtime directory of whoever runs it."""
    home = tmp_path_factory.getbasetemp() / "home"
    home.mkdir(exist_ok=True)
    for name in (
        "XDG_STATE_HOME",
        "XDG_CONFIG_HOME",
        "STATE_DIRECTORY",
        "RUNTIME_DIRECTORY",
        "CREDENTIALS_DIRECTORY",
        "JOURNAL_STREAM",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))

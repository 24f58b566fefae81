"""How the suite is run, and fixtures every test may use: a real model, an environment that is nobody's."""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.support.one_at_a_time import one_at_a_time

# Processes for the whole suite, unless `-n` says otherwise. Each may start engines: more of them want more
# than the two cores that the suite is tried on.
WORKERS = 2
PLAIN = "not long"  # what the plain run leaves out: `-m` in pyproject.toml

# The same examples in every run, so that a run says something about the change and not about luck.
# HYPOTHESIS_PROFILE=explore looks for new ones. How long one takes is the neighbours' doing as well.
_PATIENT: Any = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("steady", derandomize=True, database=None, **_PATIENT)
hypothesis.settings.register_profile("explore", **_PATIENT)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

# Colour, the operator's own settings and the size of a terminal must not change what a test sees. (A worker
# gets a size even where there is no terminal: pytest has loaded readline, which exports one.)
for _name in [name for name in os.environ if name.startswith("RELAY_")]:
    del os.environ[_name]
for _name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
    os.environ.pop(_name, None)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """The whole suite is shared out to `WORKERS`, file by file; a part of it runs in this process at once.

    A part is what paths, ``-k`` or ``-m`` choose. ``-n N`` decides by itself, and what needs the terminal
    (``--pdb``, ``--trace``, ``-s``) or runs nothing stays here.
    """
    options, tests = config.option, Path(__file__).parent
    if hasattr(config, "workerinput") or config.getoption("numprocesses", 0) is not None:
        return
    whole = {Path(argument).resolve() for argument in config.args} <= {tests, tests.parent}
    chosen = options.keyword or options.markexpr != PLAIN
    here = options.usepdb or options.trace or options.collectonly or options.capture == "no"
    if whole and not chosen and not here:
        # In the order of their names: the long ones stand in the middle, and short ones fill the end.
        options.numprocesses, options.dist, options.loadscopereorder = WORKERS, "loadfile", False
        # Workers must find the same tests in the same order, also where one is made for each member of a set.
        os.environ.setdefault("PYTHONHASHSEED", "0")


@pytest.fixture(scope="module", autouse=True)
def _old_objects_stay() -> None:
    """What importing everything has made is not walked by each collection: that took a seventh of the time.

    For each file, because a node's own collector lets go of it when it ends.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()


def _is_the_model(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == MODEL_SHA256


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real small model: fetched once through the program's own pull, then kept in the user's cache."""
    with one_at_a_time(tmp_path_factory.getbasetemp().parent / "model.lock"):
        return _fetched()


def _fetched() -> Path:
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

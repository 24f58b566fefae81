"""Who may load whom: by import-linter's contracts, and by what a fresh interpreter has in ``sys.modules``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.tree import ROOT, SOURCE, dotted, modules

# What no headless node loads: it would pay for a console, or hold an engine in its own process.
HEAVY = {"textual", "numpy", "llama_cpp", "xllamacpp", "huggingface_hub", "keyring"}
# What pure rules cannot need. (`os` and `inspect` come with msgspec and dataclasses.)
IMPURE = {"asyncio", "aiohttp", "sqlite3", "ssl", "uvloop", "psutil", "click", "subprocess", "selectors"}
# What `relaydesk status` has no time for.
SLOW = {"asyncio", "aiohttp", "uvloop", "cryptography", "psutil", "sqlite3"}


def _loaded(names: Iterable[str]) -> set[str]:
    """Modules a fresh interpreter has after importing these, beyond those it starts with."""
    script = (
        "import importlib, json, sys\n"
        "before = set(sys.modules)\n"
        "for name in json.loads(sys.argv[1]): importlib.import_module(name)\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(list(names))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return {
        name.partition(".")[0] if not name.startswith("relaydesk") else name
        for name in json.loads(done.stdout)
    }


def _below(*folders: str, without: str = "") -> list[str]:
    found = [dotted(path) for folder in folders for path in modules(SOURCE / folder)]
    return [name for name in found if not without or not name.startswith(without)]


def test_import_contracts_hold() -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "kept" in done.stdout.lower()


def test_core_is_pure() -> None:
    names = _below("core")
    assert len(names) > 10
    loaded = _loaded(names)
    assert set(names) <= loaded | {"relaydesk"}
    assert not loaded & (IMPURE | HEAVY)
    assert not {
        name for name in loaded if name.startswith("relaydesk.") and not name.startswith("relaydesk.core")
    }


def test_a_headless_node_loads_no_console_and_no_engine() -> None:
    # engine.infer.child runs in processes of its own, where the engine library belongs.
    child = "relaydesk.engine.infer.child"
    names = _below("engine", "store", "config", "surfaces/public", "surfaces/control", without=child)
    names.append("relaydesk.scripted")
    loaded = _loaded(names)
    assert "aiohttp" in loaded
    assert not loaded & HEAVY


def test_the_command_line_is_quick_to_load() -> None:
    names = [
        dotted(path)
        for path in (
            SOURCE / "__main__.py",
            SOURCE / "surfaces/cli/__init__.py",
            SOURCE / "surfaces/cli/main.py",
        )
        if path.exists()
    ]
    loaded = _loaded([*names, "relaydesk.surfaces.control.light"])
    assert not loaded & (SLOW | HEAVY)


@pytest.mark.parametrize("name", ["relaydesk.node_api", "relaydesk.surfaces.control.routes"])
def test_what_fronts_share_is_light(name: str) -> None:
    assert not _loaded([name]) & (IMPURE | HEAVY)

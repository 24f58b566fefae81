"""The demo as a person runs it: a whole node in real processes, and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.surfaces.console.pty_console import PtyConsole

pytestmark = pytest.mark.engine


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "relaydesk", "demo", *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        env={**os.environ, **environment},
        check=False,
    )


def leftovers(directory: Path) -> list[str]:
    """Command lines of processes that still work in the demo's directory, and what is left of it."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
        except psutil.Error:
            continue
        if environment.get("RELAY_STATE_DIR", "").startswith(str(directory)):
            found.append(" ".join(process.cmdline()))
    return found + [path.name for path in directory.iterdir()]


@pytest.mark.long
def test_once_says_what_it_saw(smollm2: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "relaydesk" / "models"
    cache.mkdir(parents=True)
    (cache / smollm2.name).symlink_to(smollm2)
    temp = tmp_path / "temp"
    temp.mkdir()
    done = run("--once", "--json", TMPDIR=str(temp), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["hub"]["ok"] is True
    assert report["hub"]["tokens"] > 0
    assert report["hub"]["tls"] is True
    assert report["hub"]["wrong_key_status"] == 401
    assert [name for name in ("relay", "mesh") if report[name]["ok"] is None] == ["relay", "mesh"]
    assert leftovers(temp) == []
    assert "Next:" not in done.stdout
    shown = run("--once", TMPDIR=str(temp), XDG_CACHE_HOME=str(tmp_path / "cache")).stdout
    assert "`relaydesk serve` starts a node of your own" in shown
    assert max(map(len, shown.partition("asking")[0].splitlines())) <= 80


def test_in_a_terminal_it_opens_the_console_on_its_node(
    smollm2: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Short: sockets are made below it.
    home = tmp_path_factory.mktemp("d")
    cache, temp = home / "cache" / "relaydesk" / "models", home / "t"
    cache.mkdir(parents=True)
    (cache / smollm2.name).symlink_to(smollm2)
    temp.mkdir()
    with PtyConsole(
        home / "state", "demo", "--tokens", "8", size=(120, 36), TMPDIR=str(temp),
        XDG_CACHE_HOME=str(home / "cache"), RELAY_THREADS="1",
    ) as console:  # fmt: skip
        console.wait_for("opening the console on this node", 60)
        console.wait_for("ATTACHED", 30)
        console.wait_for("no alerts", 30)
        # The guests come, and their requests are seen.
        seen = len(console.text)
        console.press("3")
        console.wait_for("answering", 60, since=seen)
        console.press("q")
        assert console.end(60) == 0
        assert console.left_on() == []
        assert "nothing of it is left but the model" in console.text
    assert leftovers(temp) == []


def test_what_fails_is_one_sentence(tmp_path: Path) -> None:
    temp = tmp_path / "temp"
    temp.mkdir()
    (tmp_path / "file").write_text("in the way of the cache")
    done = run("--once", "--json", TMPDIR=str(temp), XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("relaydesk: ")
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["hub"]["ok"] is False
    assert leftovers(temp) == []

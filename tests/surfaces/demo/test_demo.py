"""The demo as a person runs it: a whole network in real processes, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
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


@pytest.fixture
def home(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a demo finds the model, and its temporary directory ``t``. Short: sockets are made below it."""
    home = tmp_path_factory.mktemp("d")
    cache = home / "cache" / "relaydesk" / "models"
    cache.mkdir(parents=True)
    (cache / smollm2.name).symlink_to(smollm2)
    (home / "t").mkdir()
    return home


def surroundings(home: Path) -> dict[str, str]:
    return {"TMPDIR": str(home / "t"), "XDG_CACHE_HOME": str(home / "cache")}


def test_once_says_what_it_saw(home: Path) -> None:
    done = run("--once", "--json", "--tokens", "24", **surroundings(home))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    report = json.loads(done.stdout.splitlines()[-1])
    assert [name for name, part in report.items() if part["ok"] is None] == ["mesh"]
    hub, relay = report["hub"], report["relay"]
    assert hub["ok"] is True
    assert 0 < hub["tokens"] <= 24
    assert hub["tls"] is True
    assert hub["wrong_key_status"] == 401
    assert (relay["ok"], relay["marked"]) == (True, True)
    assert relay["target"] == "target"
    assert relay["relay"] in ("keeper", "relay")
    assert 0 < relay["tokens"] <= 24
    assert [hop["purpose"] for hop in relay["hops"] if hop["status"] == 200] == ["reserve", "inference"] * 2
    assert {hop["target"] for hop in relay["hops"]} == {"target"}
    assert relay["receipt"]["verified"] is True
    # What the first question came to is earned, what the second may cost is still held.
    after = relay["balances"]["after"]
    assert after["earned"] == relay["receipt"]["amount"] > 0
    assert after["held"] > 0
    assert relay["balances"]["sum_kept"] is True
    leaks = relay["leaks"]
    assert (leaks["found"], leaks["planted_found"]) == (0, True)
    assert {"the wire", "keeper: files", "relay: files", "relay: log"} <= set(leaks["searched"])
    if sys.platform == "linux":
        assert {"relay: memory", "target: sealed requests", "target: files"} <= set(leaks["searched"])
    assert leftovers(home / "t") == []
    assert "Next:" not in done.stdout


@pytest.mark.long
def test_what_it_prints_for_people(home: Path) -> None:
    done = run("--once", **surroundings(home))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "`relaydesk serve` starts a node of your own" in done.stdout
    assert "found 0 times in" in done.stdout
    # But for the answers, which a terminal wraps.
    first, _, rest = done.stdout.partition("asking")
    *_, last = rest.partition("sealed through")
    assert max(map(len, (first + last).splitlines())) <= 100
    assert max(map(len, first.splitlines())) <= 80


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_stays_whenever_it_is_interrupted(home: Path, number: signal.Signals) -> None:
    """When one node is there, while it is asked, while the others find each other; by somebody impatient."""
    for step, times in (("listens on", 1), ("asking smollm2", 1), ("four operators", 2)):
        with subprocess.Popen(
            [sys.executable, "-m", "relaydesk", "demo", "--once"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **surroundings(home)},
        ) as demo:
            assert demo.stdout is not None
            while step not in demo.stdout.readline():
                assert demo.poll() is None
            for _ in range(times):
                demo.send_signal(number)
                time.sleep(0.05)
            _, said = demo.communicate(timeout=60)
        assert demo.returncode == 128 + number, said
        assert "Traceback" not in said
        assert leftovers(home / "t") == []


@pytest.mark.long
def test_in_a_terminal_it_opens_the_console_on_the_client(home: Path) -> None:
    with PtyConsole(home / "state", "demo", "--tokens", "8", size=(120, 36), **surroundings(home)) as console:
        console.wait_for("opening the console on the client's node", 90)
        console.wait_for("ATTACHED", 30)
        # The one alert says that this is a lab.
        console.wait_for("1 alert", 30)
        # The guests come, and their requests are seen: here, and at the network.
        for pane, shown in (
            ("3", "answering"),
            ("3", "net/smollm2"),
            ("7", "3 reachable"),
            ("8", "answered"),
        ):
            seen = len(console.text)
            console.press(pane)
            console.wait_for(shown, 60, since=seen if pane != "3" else 0)
        console.press("q")
        assert console.end(60) == 0
        assert console.left_on() == []
        assert "nothing of it is left but the model" in console.text
    assert leftovers(home / "t") == []


@pytest.mark.long
def test_what_fails_is_one_sentence(tmp_path: Path) -> None:
    temp = tmp_path / "temp"
    temp.mkdir()
    (tmp_path / "file").write_text("in the way of the cache")
    done = run("--once", "--json", TMPDIR=str(temp), XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("relaydesk: ")
    assert "Traceback" not in done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert [report[part]["ok"] for part in ("hub", "relay", "mesh")] == [False, False, None]
    assert report["hub"]["reason"] in done.stderr
    assert leftovers(temp) == []

"""The console on a real terminal: whatever ends it leaves the terminal as it was."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from relaydesk.surfaces.console.run import CRASH_FILE
from relaydesk.surfaces.control import light
from tests.surfaces.console.pty_console import MODES, PtyConsole

READY = "no alerts"


@pytest.fixture
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Short: a socket's path has 107 bytes.
    return tmp_path_factory.mktemp("s")


def _answers(state: Path) -> bool:
    try:
        return light.request(state / "control.sock", "GET", "/status", timeout=5)[0] == 200
    except Exception:
        return False


def test_the_modes_are_really_used(state: Path) -> None:
    with PtyConsole(state, "console") as console:
        console.wait_for(READY)
        assert all(on in console.output for on, _ in MODES.values())
        assert set(console.left_on()) >= {"alternate screen", "mouse", "cursor", "line discipline"}
        console.press("q")
        console.wait_for("Leave, and stop the node?")
        console.press("\r")
        time.sleep(0.3)
        assert console.process.poll() is None
        console.press("y")
        assert console.end() == 0
        assert console.left_on() == []
    assert not _answers(state)


def test_relaydesk_alone_opens_it_and_term_stops_the_node_too(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with PtyConsole(state) as console:
        painted = console.wait_for("Waiting for the node")
        ready = console.wait_for(READY)
        with capsys.disabled():
            print(f"\nfirst paint {painted * 1000:.0f} ms, node ready {ready * 1000:.0f} ms (embedded)")
        assert _answers(state)
        console.signal(signal.SIGTERM)
        assert console.end() == 0
        assert console.left_on() == []
    assert not _answers(state)


def test_a_terminal_that_goes_away_stops_the_node(state: Path) -> None:
    with PtyConsole(state) as console:
        console.wait_for(READY)
        console.hang_up()
        assert console.end() == 0
    assert not _answers(state)


def test_keep_serving_outlives_the_terminal(state: Path) -> None:
    with PtyConsole(state, "console", "--keep-serving") as console:
        console.wait_for(READY)
        console.hang_up()
        time.sleep(1.0)
        assert console.process.poll() is None
        assert _answers(state)
        console.signal(signal.SIGTERM)
        assert console.end() == 0


@pytest.fixture
def served(state: Path) -> Path:
    """A node in a process of its own."""
    command = [sys.executable, "-m", "relaydesk", "serve"]
    env = {
        "PATH": "/usr/bin:/bin",
        "RELAY_STATE_DIR": str(state),
        "RELAY_LISTEN": "127.0.0.1:0",
        "RELAY_V1_TLS": "off",
        "XDG_RUNTIME_DIR": str(state),
        "HOME": str(state),
    }
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("listening on")
    yield state
    process.terminate()
    assert process.wait(20) == 0
    process.stdout.close()


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGHUP, marks=pytest.mark.long),
        pytest.param(signal.SIGINT, marks=pytest.mark.long),
    ],
)
def test_attached_signals_end_the_console_alone(
    served: Path, number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    with PtyConsole(served) as console:
        painted = console.wait_for("ATTACHED")
        ready = console.wait_for(READY)
        with capsys.disabled():
            print(f"\nfirst paint {painted * 1000:.0f} ms, live {ready * 1000:.0f} ms (attached)")
        console.signal(number)
        assert console.end() == 0
        assert console.left_on() == []
    assert _answers(served)


def test_attached_and_left_by_q_the_node_goes_on(served: Path) -> None:
    with PtyConsole(served, "console", "--read-only") as console:
        console.wait_for("READ-ONLY")
        console.wait_for(READY)
        console.press("q")
        assert console.end() == 0
        assert console.left_on() == []
    assert _answers(served)


CRASHES = (
    "from relaydesk.surfaces.console.frame_actions import FrameActions\n"
    "def fail(self):\n"
    "    secret = 'sk-' + 'do-not-show'\n"
    "    raise TypeError('the theme is lost')\n"
    "FrameActions.do_theme = fail\n"
)


def test_a_crash_restores_the_terminal_and_says_where(state: Path) -> None:
    with PtyConsole(state, before=CRASHES) as console:
        console.wait_for(READY)
        console.press("t")
        assert console.end() == 1
        assert console.left_on() == []
        where = state / CRASH_FILE
        assert f"the console failed (TypeError): the trace is in {where}" in "".join(
            console.text.splitlines()
        )
        assert "Traceback" not in console.text
        assert "do-not-show" not in console.text
    trace = where.read_text()
    assert "the theme is lost" in trace
    assert "do-not-show" not in trace
    assert stat.S_IMODE(where.stat().st_mode) == 0o600
    assert not _answers(state)


def test_a_node_that_fails_restores_the_terminal_and_says_why(state: Path) -> None:
    fails = (
        "from relaydesk.engine.node import Node\n"
        "from relaydesk.core.errors import EnvError\n"
        "async def drain(self, hurry): raise EnvError('storage_failed', 'the disk is gone', 'look at it')\n"
        "Node.drain = drain\n"
    )
    with PtyConsole(state, before=fails) as console:
        console.wait_for(READY)
        console.signal(signal.SIGTERM)
        assert console.end() == 1
        assert console.left_on() == []
        assert "relaydesk: the disk is gone: look at it" in console.text


def test_a_port_in_use_is_a_sentence_after_the_console(state: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with PtyConsole(state, RELAY_LISTEN=f"127.0.0.1:{taken.getsockname()[1]}") as console:
            assert console.end() == 1
            assert console.left_on() == []
            assert "relaydesk: " in console.text
            assert "Traceback" not in console.text


def test_a_read_only_console_without_a_node_starts_none(state: Path) -> None:
    with PtyConsole(state, "console", "--read-only") as console:
        console.wait_for("a read-only console has nothing to look at")
        assert console.end() == 3
    assert not (state / "control.sock").exists()


@pytest.mark.long
def test_resize(state: Path) -> None:
    with PtyConsole(state, size=(60, 16)) as console:
        console.wait_for(READY)
        seen = len(console.text)
        console.resize(50, 10)
        console.wait_for("Terminal too small (50x10, needs 60x16)", since=seen)
        seen = len(console.text)
        console.resize(120, 36)
        console.wait_for("palette", since=seen)
        console.signal(signal.SIGTERM)
        assert console.end() == 0
        assert console.left_on() == []


def test_what_libraries_write_reaches_the_log_and_not_the_screen(state: Path) -> None:
    writes = (
        "import os, subprocess\n"
        "from relaydesk.surfaces.console.frame_actions import FrameActions\n"
        "def noise(self):\n"
        "    os.write(2, b'native \\x1b[2Jnoise\\n')\n"
        "    subprocess.run(['sh', '-c', 'echo child noise >&2; echo child words'])\n"
        "FrameActions.do_slower = noise\n"
    )
    with PtyConsole(state, before=writes, size=(100, 30)) as console:
        console.wait_for(READY)
        console.press("5-")
        console.wait_for("written past the log: child noise")
        console.wait_for("written past the log: child words")
        console.press("q")
        console.wait_for("Leave")
        console.press("y")
        assert console.end() == 0
        assert "native \x1b[2Jnoise" not in console.output


def test_without_a_terminal_it_says_so() -> None:
    command = [sys.executable, "-m", "relaydesk", "console"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stderr == "relaydesk: the console needs a terminal: `relaydesk status` needs none\n"

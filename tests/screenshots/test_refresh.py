"""The pictures are those that the console draws now, and the recording behind them gives nothing away."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from relaydesk.scripted import read_recording

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "screenshots" / "refresh.py"
RECORDING = ROOT / "tests" / "recordings" / "demo.jsonl"


@pytest.mark.long
def test_the_pictures_are_of_this_console() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_a_picture_that_differs_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("refresh", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    refresh = importlib.util.module_from_spec(spec)
    sys.modules["refresh"] = refresh
    spec.loader.exec_module(refresh)
    del sys.modules["refresh"]
    assert refresh.compare({"overview-80x24.svg": "<svg/>", "nothing-1x1.svg": ""}) == 1
    assert "old: overview-80x24.svg, nothing-1x1.svg: run" in capsys.readouterr().err
    assert refresh.compare({"keys-80x24.svg": (SCRIPT.parent / "keys-80x24.svg").read_text()}) == 0


def test_the_recording_holds_a_busy_hub_and_a_model_that_does_not_fit() -> None:
    frames = read_recording(RECORDING.read_bytes().splitlines())
    health = [frame.update.health.value for frame in frames if frame.update.health is not None]
    assert max(each.queued for each in health if each is not None) > 0
    models = [frame.update.models.value for frame in frames if frame.update.models is not None]
    assert {model.fits for model in models[-1].models if models[-1] is not None} == {True, False}


def test_the_recording_holds_a_network_that_was_asked() -> None:
    frames = read_recording(RECORDING.read_bytes().splitlines())
    relays = [frame.update.relays.value for frame in frames if frame.update.relays is not None]
    assert {each.tier for each in relays[-1].relays if each.standing == "eligible"} == {"reachable"}
    hops = [frame.update.hops.value for frame in frames if frame.update.hops is not None]
    assert {each.purpose for each in hops[-1].hops} == {"probe", "reserve", "inference"}
    (credit,) = [frame.update.ledger.value for frame in frames if frame.update.ledger is not None][-1].credit
    assert credit.balance > 0


def test_the_recording_has_no_secret_and_no_place_of_its_machine() -> None:
    text = RECORDING.read_text(encoding="utf-8")
    # A key has 64 hexadecimal digits, a fingerprint colons.
    assert not re.search(r"(?<![0-9a-f:])[0-9a-f]{48,}(?![0-9a-f:])", text)
    paths = set(re.findall(r'"(/[^"]*)"', text))
    assert all(path.startswith(("/tmp/relaydesk-demo-", "/v1/")) for path in paths), paths
    assert not re.search(r"/(?:home|root|Users|work)/", text)

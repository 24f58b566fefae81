"""The units: systemd takes them, they close what they can, and leave open what engines need."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.service.unit import MARK, UnitOptions, quote, system_unit, user_unit

TRUE = shutil.which("true") or "/bin/true"
OPTIONS = UnitOptions(command=(TRUE, "serve"), drain_s=90, port=8383, groups=("video",))
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed here"
)


def verify(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "relaydesk.service"
    path.write_text(text)
    # Without --recursive-errors=yes an unknown key is printed and the exit code is 0.
    return subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=yes", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )


@needs_systemd
@pytest.mark.parametrize("make", [system_unit, user_unit])
def test_systemd_takes_it(tmp_path: Path, make: object) -> None:
    done = verify(tmp_path, make(OPTIONS))  # type: ignore[operator]
    assert (done.returncode, done.stderr) == (0, "")
    broken = verify(tmp_path, make(OPTIONS) + "\n[Service]\nNoSuchKey=yes\n")  # type: ignore[operator]
    assert broken.returncode != 0


@needs_systemd
def test_exposure_is_low(tmp_path: Path) -> None:
    path = tmp_path / "relaydesk.service"
    path.write_text(system_unit(OPTIONS))
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=25", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-300:]


def keys(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_devices_of_gpus_stay_in_reach() -> None:
    """Each of these would close them; ProtectClock does so by a DeviceAllow of its own."""
    closing = {"PrivateDevices", "DevicePolicy", "DeviceAllow", "ProtectClock", "MemoryDenyWriteExecute"}
    assert not closing & set(keys(system_unit(OPTIONS)))
    assert keys(system_unit(OPTIONS))["SupplementaryGroups"] == "video"
    assert "SupplementaryGroups" not in keys(system_unit(UnitOptions(command=(TRUE,))))


def test_stopping_leaves_time_to_drain_and_engines_alone() -> None:
    for text in (system_unit(OPTIONS), user_unit(OPTIONS)):
        found = keys(text)
        assert text.startswith(MARK)
        assert int(found["TimeoutStopSec"]) > 90
        assert (found["KillMode"], found["Type"], found["OOMPolicy"]) == ("mixed", "notify", "continue")
        assert found["ExecReload"] == "/bin/kill -HUP $MAINPID"
        assert found["RestartPreventExitStatus"] == "2"


def test_a_low_port_gets_its_one_capability() -> None:
    low = keys(system_unit(UnitOptions(command=(TRUE,), port=443)))
    assert low["AmbientCapabilities"] == low["CapabilityBoundingSet"] == "CAP_NET_BIND_SERVICE"
    assert keys(system_unit(OPTIONS))["CapabilityBoundingSet"] == ""
    assert "AmbientCapabilities" not in keys(system_unit(UnitOptions(command=(TRUE,), port=0)))
    proving = keys(system_unit(UnitOptions(command=(TRUE,), acme_port=80)))
    assert proving["AmbientCapabilities"] == low["AmbientCapabilities"]


def test_a_users_state_is_where_it_is_by_hand() -> None:
    assert not {"StateDirectory", "RuntimeDirectory", "User", "DynamicUser"} & set(keys(user_unit(OPTIONS)))


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("/usr/bin/x", "/usr/bin/x"),
        ("/a b/x", '"/a b/x"'),
        ("100%", "100%%"),
        ("$HOME", '"$$HOME"'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("", '""'),
    ],
)
def test_quoting(word: str, quoted: str) -> None:
    assert quote(word) == quoted


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=20))
def test_quoting_reads_back(word: str) -> None:
    """The rules of systemd.service(5) applied backwards."""
    text = quote(word)
    assert " " not in text or text.startswith('"')
    if text.startswith('"'):
        text = re.sub(r"\\(.)", r"\1", text[1:-1])
    assert text.replace("%%", "%").replace("$$", "$") == word

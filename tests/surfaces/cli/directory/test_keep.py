"""`relaydesk directory`: keeping one by verbs, and serving it without a node."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.relay.directory.document import open_document
from tests.support.directory_world import ANN, BOB


def opened(folder: Path, address: str) -> Any:
    return open_document((folder / "document.json").read_bytes(), address, int(time.time()))


def test_a_directory_is_begun_admits_and_is_signed(cli: Any, state_dir: Path) -> None:
    state_dir.mkdir(mode=0o700)
    made = cli("directory", "init", "--name", "home", "--json").json
    folder, address = state_dir / "directory", made["address"]
    assert made["folder"] == str(folder)
    assert opened(folder, address).name == "home"
    assert cli("directory", "init").code == 1
    admitted = cli("directory", "admit", ANN.address, "--name", "ann", "--json").json
    assert admitted == {"operator": str(ANN.operator), "owner": ANN.address, "status": "active"}
    assert "evicted" in cli("directory", "admit", BOB.address, "--evict").out
    found = opened(folder, address)
    assert [(each.owner, each.status) for each in found.operators] == [
        (ANN.address, "active"),
        (BOB.address, "evicted"),
    ]
    signed = cli("directory", "sign", "--json").json
    assert signed["version"] > found.version
    assert (signed["operators"], signed["nodes"]) == (2, 0)
    assert "valid until" in cli("directory", "sign").out


def test_a_folder_of_ones_own(cli: Any, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    address = cli("directory", "init", "--folder", folder).out.strip()
    assert opened(folder, address).operators == ()


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("sign",), 1),
        (("admit", ANN.address), 1),
        (("admit", "x\x1b[2J"), 2),
        (("serve", "--listen", "nowhere"), 2),
        (("serve", "--listen", "0.0.0.0:0"), 2),
        (("serve", "--listen", "127.0.0.1:0"), 1),
    ],
)
def test_misuse_is_a_sentence(cli: Any, args: tuple[str, ...], code: int) -> None:
    done = cli("directory", *args)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("relaydesk: ")
    assert "\x1b" not in done.err


def test_it_is_served_without_a_node(cli: Any, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    address = cli("directory", "init", "--folder", folder).out.strip()
    words = ("serve", "--listen", "127.0.0.1:0", "--folder", folder)
    process = subprocess.Popen(
        [sys.executable, "-m", "relaydesk", "directory", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ) | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        said, _, url = process.stdout.readline().strip().partition(" on ")
        assert said == f"directory {address}"
        with urllib.request.urlopen(f"{url}/v1/zs/directory", timeout=10) as reply:
            found = open_document(reply.read(), address, int(time.time()))
        assert found.operators == ()
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")

"""`relaydesk directory list`: what the keeper decided, and what nodes handed in."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from relaydesk.core.relay.directory.certificate import issue_certificate
from relaydesk.core.relay.directory.record import issue_record
from relaydesk.core.relay.directory.signing_key import new_key
from relaydesk.engine.relay.directory.shelf import Shelf
from tests.support.clock import FakeRng
from tests.support.directory_world import ANN, BOB, EVE


def test_whom_it_admits_with_names_nodes_and_standing(cli: Any, tmp_path: Path) -> None:
    folder, now = tmp_path / "d", int(time.time())
    address = cli("directory", "init", "--folder", folder, "--name", "home").out.strip()
    assert "admits nobody yet" in cli("directory", "list", "--folder", folder).out
    owner, signing = new_key("owner", FakeRng("owner")), new_key("node", FakeRng("node"))
    for key, *more in ((owner.address, "--name", "cay"), (BOB.address,), (EVE.address, "--evict")):
        assert cli("directory", "admit", key, "--folder", folder, *more).code == 0
    made = issue_certificate(
        owner.address, owner.sign, node_id=3, signing=signing.address, issued_at=now, expires_at=now + 86_400
    )
    Shelf(folder).put(
        issue_record(
            made,
            signing.address,
            signing.sign,
            version=now,
            issued_at=now,
            base_url="https://cay.example",
            staging=False,
            status="active",
        )
    )
    out = cli("directory", "list", "--folder", folder).out
    lines = out.splitlines()
    assert lines[0] == f"directory {address} (home)"
    (row,) = [line for line in lines if "https://cay.example" in line]
    assert all(word in row for word in (":3 ", "cay", "admitted"))
    assert "no node has come yet" in out and "evicted" in out
    assert f"{BOB.operator} is {BOB.address}" in out and ANN.address not in out
    found = cli("directory", "list", "--folder", folder, "--json").json
    assert (found["address"], found["name"]) == (address, "home")
    assert [each["status"] for each in found["operators"]] == ["active", "active", "evicted"]
    (node,) = found["operators"][0]["nodes"]
    assert (node["node"], node["base_url"]) == (3, "https://cay.example")


def test_without_a_directory_it_says_how_to_begin_one(cli: Any, tmp_path: Path) -> None:
    done = cli("directory", "list", "--folder", tmp_path / "none")
    assert done.code == 1 and "relaydesk directory init" in done.err

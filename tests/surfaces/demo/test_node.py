"""A node of the demo as a process: how it starts, fails and ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from relaydesk.surfaces.demo.client import DemoFailedError
from relaydesk.surfaces.demo.node import Node


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short: a socket is made in it."""
    return tmp_path_factory.mktemp("n")


def test_a_node_from_its_start_to_its_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_LISTEN", "what somebody had set is not for the demo's nodes")
    node = Node(folder, {"V1_TLS": "off", "PLANTED_word": "1"})
    try:
        node.begin()
        node.wait()
        assert node.url.startswith("http://127.0.0.1:")
        assert node.view("health")["in_flight"] == 0
        with pytest.raises(DemoFailedError, match=r"is empty|answered 404"):
            node.view("nothing")
        with pytest.raises(DemoFailedError, match=r"load-model failed: .*nothing"):
            node.command("load-model", name="nothing")
        assert "RELAY_PLANTED_word" in node.log.read_text()
    finally:
        node.end()
    assert node.process is not None
    assert node.process.returncode == 0
    node.end()


def test_a_node_that_does_not_start_says_why(folder: Path) -> None:
    node = Node(folder, {"LISTEN": "nowhere"})
    node.begin()
    with pytest.raises(DemoFailedError, match="RELAY_LISTEN"):
        node.wait()
    node.end()


def test_a_node_that_never_began_has_nothing_to_end(folder: Path) -> None:
    node = Node(folder, {})
    node.end_soon()
    node.end()

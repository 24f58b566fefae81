"""Four operators before they start; that they find each other is in `test_demo.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from relaydesk.surfaces.demo import network as module
from relaydesk.surfaces.demo.client import DemoFailedError
from relaydesk.surfaces.demo.network import NAMES, Network


def quiet(_name: str) -> dict[str, str]:
    return {"LOG_LEVEL": "debug"}


@pytest.fixture
def unstarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.Node, "begin", lambda _self: None)


@pytest.mark.usefixtures("unstarted")
def test_each_has_keys_ports_and_a_folder_of_its_own(tmp_path: Path) -> None:
    with Network(tmp_path, quiet) as network:
        assert tuple(each.name for each in network) == NAMES
        assert len({each.ref for each in network}) == 4
        assert len({each.node.state for each in network}) == 4
        assert len({each.tap.url for each in network}) == 4
        assert network["client"].node.folder == tmp_path
        environments = [each.node.environment for each in network]
        # All pin the first one's directory, at the place where it will be served.
        (pinned,) = {each["RELAY_DIRECTORIES"] for each in environments}
        assert pinned.endswith("@" + network["keeper"].tap.url)
        assert all(each["RELAY_LOG_LEVEL"] == "debug" for each in environments)
        if sys.platform == "linux":
            assert network.distinct
            assert len({each.source for each in network}) == 4


@pytest.mark.usefixtures("unstarted")
def test_what_does_not_come_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READY_S", 0.0)
    with (
        Network(tmp_path, quiet) as network,
        pytest.raises(DemoFailedError, match="the moon did not rise within 0 s"),
    ):
        network.until(lambda: False, "the moon did not rise")


@pytest.mark.usefixtures("unstarted")
def test_where_loopback_has_one_address_all_share_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_bindable", lambda _address: False)
    with Network(tmp_path, quiet) as network:
        assert not network.distinct
        assert {each.source for each in network} == {"127.0.0.1"}
        assert {each.node.environment["RELAY_OUTBOUND_ADDRESS"] for each in network} == {""}
        assert all(each.tap.url.startswith("http://127.0.0.1:") for each in network)


def test_what_fails_in_the_making_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "keeper").write_text("in the way")
    network = Network(tmp_path, quiet)
    with pytest.raises(FileExistsError), network:
        pass
    assert list(network) == []

"""`relaydesk config`: a node's settings, or those a start would use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from relaydesk.config.load import load
from relaydesk.config.show import shown
from relaydesk.core.commands import ShowConfig


def config_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config" / "relaydesk" / "relaydesk.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_without_a_node_what_a_start_would_use(cli: Any, tmp_path: Path) -> None:
    config_file(tmp_path, '\nlisten = "127.0.0.1:9000"\n')
    result = cli("config", "show", "--origin", "--json")
    assert result.code == 0
    assert result.err == "no node is running: these are the settings that a start would use\n"
    rows = {row["name"]: row for row in result.json["settings"]}
    assert rows["RELAY_LISTEN"]["value"] == "127.0.0.1:9000"
    assert rows["RELAY_LISTEN"]["origin"] == "relaydesk.toml:2"
    assert rows["RELAY_QUEUE"]["origin"] == "default"
    line = next(line for line in cli("config", "show", "--origin").out.splitlines() if "RELAY_LISTEN" in line)
    assert line.split() == ["RELAY_LISTEN", "127.0.0.1:9000", "relaydesk.toml:2"]
    assert "relaydesk.toml" not in cli("config", "show").out


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_running_nodes_settings(cli: Any, node: Any, wrapped: bool) -> None:
    rows = list(shown(load(env={"RELAY_QUEUE": "7"})))
    node.answer(ShowConfig, {"settings": rows} if wrapped else rows)
    result = cli("config", "show", "--origin")
    assert (result.code, result.err) == (0, "")
    line = next(line for line in result.out.splitlines() if "RELAY_QUEUE" in line)
    assert line.split() == ["RELAY_QUEUE", "7", "environment"]


def test_a_secret_is_never_printed(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_API_KEY", "very-secret")
    result = cli("config", "show", "--origin")
    assert "very-secret" not in result.out + result.err
    assert "(set)" in result.out


def test_check_counts_and_warns(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = config_file(tmp_path, "queue = 9\n")
    monkeypatch.setenv("RELAY_LISTENN", "x")
    result = cli("config", "check")
    assert result.code == 0
    # RELAY_STATE_DIR of the test itself is the second.
    assert result.out == f"the settings are valid: 2 given, the rest are defaults ({path})\n"
    assert "warning: unknown setting RELAY_LISTENN is ignored: did you mean RELAY_LISTEN?" in result.err


def test_check_refuses_with_code_2(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text("queue = 0\n")
    result = cli("--config", path, "config", "check")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("relaydesk: RELAY_QUEUE is 0 (from other.toml:1)")


def test_paths_in_force_are_shown_where_none_was_given(cli: Any, node: Any, state_dir: Path) -> None:
    node.views["meta"] = msgspec.structs.replace(node.views["meta"], state_dir="/var/lib/relaydesk")
    node.answer(ShowConfig, list(shown(load(env={"RELAY_MODEL_DIR": "/big"}))))
    table = [line.split() for line in cli("config", "show").out.splitlines()]
    assert ["RELAY_STATE_DIR", "(/var/lib/relaydesk)"] in table
    assert ["RELAY_SOCKET", "(~/state/control.sock)"] in table
    assert ["RELAY_MODEL_DIR", "/big"] in table
    rows = {row["name"]: row for row in cli("config", "show", "--json").json["settings"]}
    state = rows["RELAY_STATE_DIR"]
    assert (state["value"], state["in_force"]) == ("", "/var/lib/relaydesk")
    node.stop()
    assert "(~/state/models)" in cli("config", "show", "--origin").out


def test_check_says_what_keeps_the_network_closed(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_NETWORK", "on")
    assert "would stay closed: the network listener has no certificate" in cli("config", "check").err
    monkeypatch.setenv("RELAY_NETWORK_LISTEN", "127.0.0.1:8384")
    result = cli("config", "check")
    assert result.code == 0
    assert "set RELAY_DIRECTORIES" in result.err and "RELAY_PUBLIC_URL is not set" in result.err
    monkeypatch.setenv("RELAY_PUBLIC_URL", "http://127.0.0.1:8384")
    result = cli("config", "check")
    assert "would stay closed: RELAY_PUBLIC_URL is a private address" in result.err
    monkeypatch.setenv("RELAY_NETWORK", "off")
    assert "warning" not in cli("config", "check").err

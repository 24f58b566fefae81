"""`relaydesk token`: through the node, or from the state directory of one that does not run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.access.default_key import SECRET_NAME
from relaydesk.core.commands import RotateDefaultKey, ShowDefaultKey
from relaydesk.store.secrets import FileSecrets


@pytest.mark.parametrize("value", [{"key": "k" * 32}, "k" * 32])
def test_shown_by_the_node(cli: Any, node: Any, value: Any) -> None:
    node.answer(ShowDefaultKey, value)
    assert cli("token", "--api").out == "k" * 32 + "\n"
    assert cli("token", "--api", "--json").json == {"name": "default", "key": "k" * 32}
    assert node.seen == [ShowDefaultKey(), ShowDefaultKey()]


def test_rotated_only_when_confirmed(cli: Any, node: Any) -> None:
    node.answer(RotateDefaultKey, {"key": "n" * 32})
    refused = cli("token", "--api", "--rotate")
    assert (refused.code, refused.out, node.seen) == (4, "", [])
    assert "every client that uses it gets 401" in refused.err
    done = cli("token", "--rotate", "--yes")  # whose key is plain: there is one
    assert (done.code, done.out, node.seen) == (0, "n" * 32 + "\n", [RotateDefaultKey()])


def test_from_the_state_directory(cli: Any, state_dir: Path) -> None:
    FileSecrets(state_dir).put(SECRET_NAME, "s" * 64)
    assert cli("token", "--api").out == "s" * 64 + "\n"


def test_from_a_setting(cli: Any, state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FileSecrets(state_dir).put(SECRET_NAME, "s" * 64)
    monkeypatch.setenv("RELAY_API_KEY", "from-the-environment")
    assert cli("token", "--api").out == "from-the-environment\n"


def test_none_yet(cli: Any, state_dir: Path) -> None:
    result = cli("token", "--api")
    assert (result.code, result.out) == (3, "")
    assert f"{state_dir} holds no key yet: the first start makes one" in result.err


def test_rotating_needs_a_node(cli: Any, state_dir: Path) -> None:
    FileSecrets(state_dir).put(SECRET_NAME, "s" * 64)
    assert cli("token", "--api", "--rotate", "--yes").code == 3
    assert FileSecrets(state_dir).get(SECRET_NAME) == "s" * 64


def test_a_key_file_that_others_can_read_is_refused(cli: Any, state_dir: Path) -> None:
    FileSecrets(state_dir).put(SECRET_NAME, "s" * 64)
    FileSecrets(state_dir).path(SECRET_NAME).chmod(0o644)
    result = cli("token", "--api")
    assert (result.code, result.out) == (1, "")
    assert "chmod 600" in result.err

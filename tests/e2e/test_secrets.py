"""Where a real hub keeps its key: in files, in a real keyring, in a credential of systemd."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.hub import Hub
from tests.support.keyrings import real_keyring

HANGING = """
import threading
from keyring.backend import KeyringBackend
class Hanging(KeyringBackend):
    priority = 1
    def get_password(self, service, username):
        threading.Event().wait()
    set_password = delete_password = lambda self, *args: threading.Event().wait()
"""


def relaydesk(hub: Hub, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in the hub's own environment."""
    return subprocess.run(
        [sys.executable, "-m", "relaydesk", *words],
        env=hub._env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def files_of(hub: Hub) -> set[str]:
    return {path.name for path in (hub.state / "secrets").iterdir()}


@pytest.mark.long
@pytest.mark.net
def test_a_key_goes_to_the_keyring_and_comes_back(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with real_keyring(tmp_path / "home") as session, Hub(tmp_path) as hub:
        key = hub.key
        hub.stop()
        hub._env |= session | {"RELAY_SECRETS": "keyring"}
        hub.start()
        assert hub.key == key
        assert files_of(hub) == {"keyring.json"}
        (row,) = hub.view().keys.value.keys
        assert row.source == "system keyring"
        hub.stop()
        assert relaydesk(hub, "token", "--api").stdout.strip() == key, "without a node"
        here = hub._env.pop("DBUS_SESSION_BUS_ADDRESS")
        hub._env["RELAY_SECRETS"] = "file"
        refused = relaydesk(hub, "serve")
        assert refused.returncode == 1
        assert "in the system keyring (SecretService) and cannot be moved back to files" in refused.stderr
        assert "Traceback" not in refused.stderr + refused.stdout
        assert files_of(hub) == {"keyring.json"}
        hub._env["DBUS_SESSION_BUS_ADDRESS"] = here
        hub.start()
        assert hub.key == key
        assert files_of(hub) == {"default_key"}
        everything = hub.log.read_text() + "".join(hub.printed)
        assert key not in everything


@pytest.mark.long
def test_a_keyring_that_hangs_ends_the_start_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "hanging_keyring.py").write_text(HANGING)
    hub = Hub(tmp_path, secrets="keyring")
    hub._env |= {"PYTHONPATH": str(tmp_path), "PYTHON_KEYRING_BACKEND": "hanging_keyring.Hanging"}
    refused = relaydesk(hub, "serve")
    assert refused.returncode == 1
    assert "the system keyring did not answer within 2 s: unlock" in refused.stderr
    assert files_of(hub) == set()


def test_a_credential_of_systemd_opens_the_hub_and_is_never_stored(tmp_path: Path) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "api-key").write_text("key-from-systemd")
    (credentials / "api-key").chmod(0o400)
    hub = Hub(tmp_path)
    hub._env["CREDENTIALS_DIRECTORY"] = str(credentials)
    with hub:
        assert hub.key == "key-from-systemd"
        rows = {row["name"]: row for row in hub.command("show-config")}
        assert rows["RELAY_API_KEY"]["origin"] == "systemd credential api-key"
        assert rows["RELAY_API_KEY"]["value"] == "(set)"
        assert hub.refused("rotate-default-key")["code"] == "refused"
    assert files_of(hub) == set()

"""A node with its listeners: what it prints, what signals do, and two of them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.support.hub import Hub

pytestmark = pytest.mark.engine


def settings(hub: Hub) -> dict[str, str]:
    return {row["name"]: row["value"] for row in hub.command("show-config")}


def test_prints_where_it_listens_its_fingerprint_and_once_the_key() -> None:
    with Hub(tls=True) as hub:
        text = "\n".join(hub.printed)
        assert f"listening on https://127.0.0.1:{hub.port}" in text
        assert hub.status()["fingerprint"] in text
        assert hub.key in text
        assert len(hub.key) == 64
        hub.stop()
        hub.start()
        assert hub.key not in "\n".join(hub.printed)


def test_a_journal_gets_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNAL_STREAM", "8:12345")
    with Hub() as hub:
        text = "\n".join(hub.printed)
        assert hub.key not in text
        assert "relaydesk token --api" in text


def test_a_given_key_is_used_and_never_stored() -> None:
    with Hub(api_key="given-key-0123456789") as hub:
        reply = httpx.get(
            f"{hub.url}/v1/models",
            headers={"Authorization": "Bearer given-key-0123456789"},
            trust_env=False,
        )
        assert reply.status_code == 200
        assert hub.refused("rotate-default-key")["code"] == "refused"
        assert not any(
            b"given-key-0123456789" in path.read_bytes() for path in hub.state.rglob("*") if path.is_file()
        )


def test_hup_takes_what_can_be_reloaded_and_keeps_what_is_broken(tmp_path: Path) -> None:
    config = tmp_path / "relaydesk.toml"
    config.write_text('heartbeat = "20s"\n')
    with Hub(config=str(config)) as hub:
        assert settings(hub)["RELAY_HEARTBEAT"] == "20s"
        assert hub.process is not None
        config.write_text('heartbeat = "30s"\nmax_body_mb = 9\n')
        hub.process.send_signal(signal.SIGHUP)
        hub.wait_for(lambda _view: settings(hub)["RELAY_HEARTBEAT"] == "30s", 10)
        assert settings(hub)["RELAY_MAX_BODY_MB"] == "8"
        config.write_text('heartbeat = "never"\n')
        hub.process.send_signal(signal.SIGHUP)
        hub.wait_for(lambda _view: "settings stay as they were" in hub.log.read_text(), 10)
        assert settings(hub)["RELAY_HEARTBEAT"] == "30s"
        assert "never" in hub.log.read_text()
        assert hub.process.poll() is None


def test_a_start_that_fails_costs_nobody_the_key() -> None:
    """A port in use, then a control socket that cannot be: the first start that works shows the key."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        hub = Hub(listen=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(AssertionError, match="did not start"):
            hub.start()
        assert hub.process is not None
        assert hub.process.wait(10) == 1
        assert not (hub.state / "secrets" / "default_key").exists()
    hub.socket.mkdir()
    with pytest.raises(AssertionError, match="did not start"):
        hub.start()
    assert hub.process.wait(10) == 1
    hub.socket.rmdir()
    with hub:
        assert any(hub.key in line for line in hub.printed)


def test_two_nodes_on_one_state_directory() -> None:
    with Hub() as hub:
        assert hub.process is not None
        done = second(hub, RELAY_SOCKET=str(hub.dir / "other.sock"))
        assert done.returncode == 1
        assert str(hub.process.pid) in done.stderr
        assert "in use" in done.stderr
        assert hub.status()["phase"] == "ready"


def test_a_port_in_use() -> None:
    with Hub() as hub, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = second(
            hub,
            RELAY_STATE_DIR=str(hub.dir / "other"),
            RELAY_SOCKET=str(hub.dir / "other.sock"),
            RELAY_LISTEN=f"127.0.0.1:{port}",
        )
        assert done.returncode == 1
        assert f"port {port} is in use" in done.stderr
        assert "--listen" in done.stderr
        assert not (hub.dir / "other.sock").exists()


def second(hub: Hub, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("RELAY_")},
        "RELAY_STATE_DIR": str(hub.state),
        "RELAY_LISTEN": "127.0.0.1:0",
        "XDG_RUNTIME_DIR": str(hub.dir),
        **environment,
    }
    done = subprocess.run(
        [sys.executable, "-m", "relaydesk", "serve"],
        capture_output=True,
        text=True,
        timeout=30,
        env=env,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().count("\n") == 0, done.stderr
    return done


def test_systemd_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        manager.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        monkeypatch.setenv("WATCHDOG_USEC", "400000")
        said: list[str] = []
        with Hub() as hub:
            while sum("WATCHDOG=1" in each for each in said) < 3:
                said.append(manager.recv(4096).decode())
            first = next(each for each in said if "READY=1" in each)
            assert hub.url in first
            hub.stop()
        manager.settimeout(0.2)
        try:
            while True:
                said.append(manager.recv(4096).decode())
        except TimeoutError:
            pass
        assert any("STOPPING=1" in each for each in said)


def test_a_socket_left_by_a_dead_node_is_taken_over() -> None:
    with Hub() as hub:
        hub.stop(signal.SIGKILL)
        assert hub.socket.exists()
        hub.start()
        assert hub.status()["phase"] == "ready"
        hub.stop()
        assert not hub.socket.exists()


def test_status_document_has_its_contract(smollm2: Path) -> None:
    with Hub() as hub:
        hub.add(smollm2)
        hub.load()
        document = hub.status()
        for name in (
            "operator",
            "node",
            "listening",
            "fingerprint",
            "uptime_s",
            "models",
            "workers",
            "members",
        ):
            assert name in document
        assert document["relays"] == []
        assert document["alerts"] == []
        worker = document["workers"][0]
        assert {"model", "pid", "url", "memory_mb"} <= set(worker)
        assert worker["pid"] in [process.pid for process in hub.engines()]
        assert json.dumps(document).count(hub.key) == 0

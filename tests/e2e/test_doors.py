"""With a model warm, nothing that listens tells a stranger anything."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx
import psutil
import pytest

from tests.support.hub import Hub, chat_body

pytestmark = pytest.mark.engine

PATHS = (
    *("/", "/health", "/healthz", "/readyz", "/v1", "/v1/models", "/v1/models/tiny", "/models", "/props"),
    *("/slots", "/metrics", "/api/tags", "/api/version", "/lora-adapters", "/status", "/views", "/watch"),
    *("/v1/chat/completions", "/completion", "/tokenize", "/infill", "/%2e%2e/", "/v1//models"),
)


def listening_ports(hub: Hub) -> set[tuple[str, int]]:
    """(address, port) of every TCP and UDP socket of the hub and its engines, found with ss."""
    assert hub.process is not None
    pids = {hub.process.pid, *(process.pid for process in hub.engines())}
    output = subprocess.run(["ss", "-lntupH"], capture_output=True, text=True, check=True).stdout
    found = set()
    for line in output.splitlines():
        if pids & {int(pid) for pid in re.findall(r"pid=(\d+)", line)}:
            address, _, port = line.split()[4].rpartition(":")
            found.add((address, int(port)))
    return found


@pytest.mark.skipif(shutil.which("ss") is None, reason="needs ss (iproute2)")
def test_only_the_public_port_listens(hub: Hub) -> None:
    assert listening_ports(hub) == {("127.0.0.1", hub.port)}


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "OPTIONS", "DELETE", "PUT"])
def test_without_a_key_only_health_answers(hub: Hub, method: str) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    with httpx.Client(base_url=hub.url, headers=headers, trust_env=False) as http:
        for path in PATHS:
            reply = http.request(method, path)
            opens = path in ("/", "/healthz", "/health", "/readyz") and method in ("GET", "HEAD")
            assert (reply.status_code == 200) is opens, (method, path, reply.status_code)
            assert "tiny" not in reply.text
            assert not [name for name in reply.headers if name.lower().startswith("access-control")]


def test_health_says_yes_and_nothing_else(hub: Hub) -> None:
    for path in ("/healthz", "/readyz"):
        assert httpx.get(hub.url + path, trust_env=False).json() == {"status": "ok"}


def test_a_foreign_host_or_page_gets_nothing_even_with_the_key(hub: Hub) -> None:
    with httpx.Client(base_url=hub.url, headers=hub.headers(), trust_env=False) as http:
        for path in ("/v1/models", "/api/tags", "/healthz"):
            reply = http.get(path, headers={"Host": "rebound.example"})
            assert reply.status_code == 403
            assert "tiny" not in reply.text
        reply = http.get("/v1/models", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in reply.headers
        reply = http.get("/v1/models", headers={"Origin": "http://localhost:3000"})
        assert reply.headers["access-control-allow-origin"] == "http://localhost:3000"
        # However the base URL was put together.
        assert http.get("//v1//v1/models/").json() == http.get("/models").json()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_local_user_reaches_no_socket(hub: Hub) -> None:
    sockets = [Path(hub.socket)]
    assert hub.process is not None
    for process in hub.engines():
        sockets += [
            Path(connection.laddr)
            for connection in process.net_connections(kind="unix")
            if connection.laddr and connection.status in (psutil.CONN_NONE, psutil.CONN_LISTEN)
        ]
    engine_sockets = [path for path in sockets if path.suffix == ".sock" and path != hub.socket]
    assert engine_sockets
    os.chmod(hub.dir, 0o755)
    code = (
        "import os, socket, sys\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n"
        "        socket.socket(socket.AF_UNIX).connect(path)\n"
        "    except OSError:\n"
        "        continue\n"
        "    sys.exit(path)\n"
    )
    subprocess.run([sys.executable, "-c", code, *map(str, sockets)], check=True)


def test_an_engine_wants_its_key_even_from_us(hub: Hub) -> None:
    workers = hub.status()["workers"]
    path = workers[0]["url"].removeprefix("unix:")
    for route in ("/v1/models", "/props", "/slots", "/metrics", "/"):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(path)
            sock.sendall(f"GET {route} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while piece := sock.recv(65536):
                answer += piece
        assert answer.split()[1] in (b"401", b"404"), (route, answer[:200])
        assert b"tiny" not in answer


def test_no_secret_and_no_prompt_is_left_anywhere(smollm2: Path) -> None:
    word = "xylophonic-marmalade"
    given = "k-" + "7f3a" * 10
    with Hub(api_key=given, log_level="debug") as hub:
        hub.add(smollm2)
        body = chat_body(f"Repeat: {word}")
        for stream in (False, True):
            reply = httpx.post(
                f"{hub.url}/v1/chat/completions",
                json={**body, "stream": stream},
                headers=hub.headers(),
                timeout=60,
                trust_env=False,
            )
            assert reply.status_code == 200
        bad = httpx.post(
            f"{hub.url}/v1/chat/completions",
            content=f'{{"messages":[{{"role":"{word}","content":"x"}}]}}',
            headers=hub.headers(),
            trust_env=False,
        )
        assert bad.status_code == 400
        assert hub.process is not None
        for process in hub.engines():
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            arguments = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            assert given.encode() not in environment + arguments
            assert b"RELAY_" not in environment
            assert word.encode() not in environment + arguments
        hub.stop()
        kept = [path for path in hub.dir.rglob("*") if path.is_file()]
        assert hub.log in kept
        assert any(path.suffix == ".db" for path in kept)
        for path in kept:
            data = path.read_bytes()
            assert word.encode() not in data, path
            assert given.encode() not in data, path

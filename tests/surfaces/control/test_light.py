from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError
from relaydesk.surfaces.control import light
from relaydesk.surfaces.control.server import ControlServer
from tests.contract.rigs import LiveNode

ROOT = Path(__file__).parents[3]


async def test_a_request_and_its_answer(server: ControlServer, path: Path) -> None:
    status, body = await asyncio.to_thread(light.request, path, "GET", "/status")
    assert status == 200
    assert json.loads(body)["node"] == "desk"


async def test_a_body_is_sent(server: ControlServer, path: Path, live: LiveNode) -> None:
    status, body = await asyncio.to_thread(
        light.request, path, "POST", "/commands/load-model", b'{"name":"m"}'
    )
    assert status == 200
    assert json.loads(body)["job"] == "job_1"
    assert live.loaded == ["m"]


async def test_errors_are_answers(server: ControlServer, path: Path) -> None:
    status, body = await asyncio.to_thread(light.request, path, "GET", "/nodes")
    assert status == 501
    assert json.loads(body)["error"]["code"] == "not_built"


async def test_headers_are_sent(server: ControlServer, path: Path) -> None:
    headers = {"X-Relaydesk-Access": "read"}
    status, _ = await asyncio.to_thread(
        light.request, path, "POST", "/commands/load-model", b'{"name":"m"}', headers=headers
    )
    assert status == 403


async def test_lines_of_a_watch_until_the_node_ends_it(
    server: ControlServer, path: Path, live: LiveNode
) -> None:
    seen: list[bytes] = []

    def follow() -> None:
        seen.extend(light.lines(path, "/watch?topics=keys"))

    following = asyncio.create_task(asyncio.to_thread(follow))
    async with asyncio.timeout(3):
        while not live.hub._watchers:
            await asyncio.sleep(0.01)
    live.change()
    await asyncio.sleep(0.25)  # keep-alives pass meanwhile
    await live.stop()
    await asyncio.wait_for(following, 3)
    assert [sorted(json.loads(line)) for line in seen] == [["keys", "seq"], ["keys", "seq"], ["closed"]]


async def test_a_large_view_is_one_line(server: ControlServer, path: Path) -> None:
    def first() -> bytes:
        lines = light.lines(path, "/watch")
        try:
            return next(iter(lines))
        finally:
            lines.close()  # type: ignore[attr-defined]

    line = await asyncio.to_thread(first)
    assert len(line) > 400_000
    assert "log" in json.loads(line)


async def test_a_refused_watch_is_a_line_too(server: ControlServer, path: Path) -> None:
    lines = await asyncio.to_thread(lambda: list(light.lines(path, "/watch?topics=weather")))
    assert json.loads(lines[0])["error"]["code"] == "invalid_request"


@pytest.fixture
def odd_node(path: Path) -> Iterator[list[bytes]]:
    """A node that answers every request with these bytes; none: it says nothing."""
    replies: list[bytes] = []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with sock:
                sock.recv(65536)
                for reply in replies:
                    sock.sendall(reply)
                if not replies:
                    sock.recv(1)

    thread = threading.Thread(target=serve)
    thread.start()
    yield replies
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def _code_of(path: Path, **options: float) -> str:
    with pytest.raises(EnvError) as caught:
        light.request(path, "GET", "/status", timeout=options.get("timeout", 2))
    return f"{caught.value.fault.code}: {caught.value.fault.message}"


def test_no_node(path: Path) -> None:
    assert _code_of(path).startswith("no_node: no node answers at ")


def test_a_dead_nodes_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
    assert _code_of(path).startswith("no_node: no node answers at ")


def test_a_silent_node(path: Path, odd_node: list[bytes]) -> None:
    started = time.perf_counter()
    assert "within 0.1 s" in _code_of(path, timeout=0.1)
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize(
    "reply",
    [b"not http at all\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"],
    ids=["nonsense", "cut short"],
)
def test_a_node_that_talks_nonsense_or_dies(path: Path, odd_node: list[bytes], reply: bytes) -> None:
    odd_node.append(reply)
    said = _code_of(path)
    assert "went away" in said and "IncompleteRead" not in said


def test_a_line_without_end(path: Path, odd_node: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaydesk.surfaces.control.lines.LineSplitter.__init__.__defaults__", (1000,))
    odd_node.append(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000)
    with pytest.raises(EnvError, match="without end"):
        list(light.lines(path, "/watch"))


async def test_it_costs_no_asyncio(server: ControlServer, path: Path) -> None:
    script = (
        "import sys; from relaydesk.surfaces.control import light; "
        "print(light.request(sys.argv[1], 'GET', '/status')[0], "
        "*[name for name in ('asyncio', 'aiohttp', 'msgspec', 'uvloop', 'multidict') if name in sys.modules])"
    )
    run = [sys.executable, "-c", script, str(path)]
    done = await asyncio.to_thread(
        subprocess.run, run, cwd=ROOT, capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.split() == ["200"]

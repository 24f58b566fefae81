from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from relaydesk.core.codec import schema_fingerprint
from relaydesk.core.commands import FitModel, LoadModel
from relaydesk.core.errors import EnvError, FaultError, PeerError
from relaydesk.node_api import WatchClosedError
from relaydesk.surfaces.control import client as module
from relaydesk.surfaces.control.client import RemoteNode
from relaydesk.surfaces.control.server import ControlServer

ROOT = Path(__file__).parents[3]


@pytest_asyncio.fixture
async def remote(server: ControlServer, path: Path) -> AsyncIterator[RemoteNode]:
    async with RemoteNode(path, silence_s=1.0, call_timeout_s=1.0) as remote:
        yield remote


async def _lost(remote: RemoteNode, code: str) -> str:
    """The sentence of each way to notice that there is no node."""
    sentences = set()
    for attempt in (remote.snapshot(), remote.call(FitModel("m")), anext(remote.watch())):
        with pytest.raises(EnvError) as caught:
            await attempt
        assert caught.value.fault.code == code
        sentences.add(str(caught.value))
    (sentence,) = sentences
    return sentence


async def test_no_socket_is_no_node(path: Path) -> None:
    async with RemoteNode(path) as remote:
        assert "start one with" in await _lost(remote, "no_node")


async def test_a_dead_nodes_socket_is_no_node(server: ControlServer, path: Path) -> None:
    await server.close()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(os.fspath(path))
    async with RemoteNode(path) as remote:
        assert "no node answers" in await _lost(remote, "no_node")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_users_socket_is_refused() -> None:
    script = (
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "from relaydesk.surfaces.control.client import RemoteNode\n"
        "from relaydesk.surfaces.control import light\n"
        "from relaydesk.core.errors import FaultError\n"
        "os.setuid(65534)\n"
        "async def main():\n"
        "    async with RemoteNode(Path(sys.argv[1])) as remote:\n"
        "        try: await remote.snapshot()\n"
        "        except FaultError as error: print(error.fault.code)\n"
        "asyncio.run(main())\n"
        "try: light.request(sys.argv[1], 'GET', '/status')\n"
        "except FaultError as error: print(error.fault.code)\n"
    )
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as sock:
        os.chmod(directory, 0o755)
        path = os.path.join(directory, "control.sock")
        sock.bind(path)
        sock.listen()
        os.chmod(path, 0o600)
        done = subprocess.run(
            [sys.executable, "-c", script, path], cwd=ROOT, capture_output=True, text=True, timeout=30
        )
    assert done.stdout.split() == ["refused", "refused"], done.stderr


async def test_the_nodes_refusal_comes_through(
    remote: RemoteNode, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    # The far end keeps the real fingerprint: only this front claims another.
    monkeypatch.setattr(module, "schema_fingerprint", lambda: "f" * 16)
    assert schema_fingerprint() != "f" * 16
    async with RemoteNode(path) as other:
        for attempt in (other.snapshot(), anext(other.watch())):
            with pytest.raises(FaultError, match="different versions") as caught:
                await attempt
            assert caught.value.fault.code == "conflict"
        outcome = await other.call(LoadModel("m"))
        assert outcome.fault is not None
        assert outcome.fault.code == "conflict"


async def test_a_node_that_hangs_is_given_up(path: Path) -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_unix_server(hang, path)
    async with RemoteNode(path, silence_s=0.1, call_timeout_s=0.1) as remote:
        assert "did not answer in time" in await _lost(remote, "no_node")
    server.close()


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (b'{"closed":"lagged"}\n', "lagged"),
        (b'{"closed":5}\n', "lost"),
        (b"nonsense\n", "lost"),
        (b'{"seq":1,"log":7}\n', "lost"),
        (b"", "lost"),
        (b'{"seq":', "lost"),
        (b"x" * 5000, "lost"),
    ],
)
async def test_a_watch_ends_with_a_reason(
    path: Path, monkeypatch: pytest.MonkeyPatch, lines: bytes, reason: str
) -> None:
    monkeypatch.setattr("relaydesk.surfaces.control.lines.LineSplitter.__init__.__defaults__", (4000,))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b'{"seq":4}\n\n' + lines)
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, path)
    async with RemoteNode(path, silence_s=1.0) as remote:
        updates = remote.watch()
        assert (await anext(updates)).seq == 4
        with pytest.raises(WatchClosedError) as caught:
            await anext(updates)
    assert caught.value.reason == reason
    server.close()


async def test_silence_is_loss(path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"seq":4}\n')
        await reader.read()
        writer.close()

    server = await asyncio.start_unix_server(serve, path)
    async with RemoteNode(path, silence_s=0.1) as remote:
        updates = remote.watch()
        await anext(updates)
        with pytest.raises(WatchClosedError, match="lost"):
            await asyncio.wait_for(anext(updates), 2)
    server.close()


async def test_an_answer_that_makes_no_sense_is_the_nodes_fault(path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, path)
    async with RemoteNode(path) as remote:
        with pytest.raises(PeerError, match="cannot be read"):
            await remote.snapshot()
        outcome = await remote.call(FitModel("m"))
        assert not outcome.ok
    server.close()


NODE = """
import asyncio, sys
from pathlib import Path
from tests.contract.rigs import LiveNode
from relaydesk.surfaces.control.server import ControlServer
async def main():
    live = LiveNode()
    await ControlServer(live.node, Path(sys.argv[1]), live.clock).start()
    print("up", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_a_killed_node_is_lost_and_found_again(path: Path) -> None:
    for _ in range(2):
        # The second node meets the socket file that the first one left.
        node = subprocess.Popen(
            [sys.executable, "-c", NODE, path], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        try:
            assert node.stdout is not None
            assert await asyncio.to_thread(node.stdout.readline) == "up\n"
            async with RemoteNode(path) as remote:
                updates = remote.watch(["keys"])
                await anext(updates)
                node.send_signal(signal.SIGKILL)
                with pytest.raises(WatchClosedError, match="lost"):
                    await asyncio.wait_for(anext(updates), 3)
                with pytest.raises(EnvError, match="no node answers"):
                    await remote.snapshot()
        finally:
            node.kill()
            node.wait()
            node.stdout.close()
        assert path.exists()

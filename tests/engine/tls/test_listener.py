from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relaydesk.engine.tls import listener as module


def everything(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(65536), b""))


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
@pytest.mark.parametrize(
    "sent",
    [
        b"GET /v1/models HTTP/1.1\r\nHost: hub:8383\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x00",
    ],
    ids=["get", "post", "h2", "ssh", "zero"],
)
def test_plain_http_gets_a_readable_answer(
    hub: Any, sent: bytes, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_REQUEST_S", 0.2)
    kinds = {"loop": asyncio.new_event_loop} if loop == "asyncio" else {}
    port = hub.serve(hub.service(), **kinds)
    with port.raw() as sock:
        sock.sendall(sent)
        answer = everything(sock)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ") and b"Connection: close" in head
    assert f"Content-Length: {len(body)}".encode() in head
    assert f"use https://localhost:{port.number}".encode() in body and b"<state dir>/tls/ca.pem" in body
    assert str(hub.state).encode() not in answer
    port.connect("hub").close()


def test_curl_shows_the_hint(hub: Any) -> None:
    port = hub.serve(hub.service())
    big = b"x" * 200_000
    shown = subprocess.run(
        ["curl", "-sS", "--noproxy", "*", "--data-binary", "@-", f"http://127.0.0.1:{port.number}/v1"],
        input=big, capture_output=True, timeout=20,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    assert b"speaks HTTPS" in shown.stdout


def test_a_head_in_pieces_and_a_half_closed_peer_are_answered(hub: Any) -> None:
    port = hub.serve(hub.service())
    with port.raw() as sock:
        for piece in (b"G", b"ET / HTTP/1.1\r\n\r", b"\n"):
            sock.sendall(piece)
            time.sleep(0.02)
        assert b"speaks HTTPS" in everything(sock)
    with port.raw() as sock:
        sock.sendall(b"GET /")
        sock.shutdown(socket.SHUT_WR)
        assert b"speaks HTTPS" in everything(sock)


def test_a_body_sent_after_the_answer_does_not_destroy_it(hub: Any) -> None:
    """A reset would make the client drop the answer it has not read yet."""
    port = hub.serve(hub.service())
    with port.raw() as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nContent-Length: 2000\r\n\r\n")
        time.sleep(0.2)
        for _ in range(2):
            sock.sendall(b"x" * 1000)
            time.sleep(0.1)
        assert b"speaks HTTPS" in everything(sock)


def test_a_body_without_end_is_cut(hub: Any) -> None:
    port = hub.serve(hub.service())
    sent = 0
    with port.raw() as sock:
        try:
            while sent < 64 << 20:
                sock.sendall(b"POST / HTTP/1.1\r\n\r\n" + b"x" * 65536)
                sent += 65536
        except ConnectionError:
            return
    pytest.fail(f"{sent} bytes were taken")


def test_a_silent_peer_is_closed_in_time(
    hub: Any, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., Any]
) -> None:
    monkeypatch.setattr(module, "FIRST_BYTE_S", 0.2)
    monkeypatch.setattr(module, "HANDSHAKE_S", 0.3)
    port = hub.serve(hub.service())
    with port.raw() as silent, port.raw() as stalled:
        stalled.sendall(b"\x16\x03")
        eventually(lambda: port.listeners[0].pending == 2)
        began = time.monotonic()
        assert everything(silent) == b""
        assert everything(stalled) == b""
        assert 0.05 < time.monotonic() - began < 5
    eventually(lambda: port.listeners[0].pending == 0)


def test_silent_peers_are_bounded_and_keep_nobody_out(
    hub: Any, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., Any]
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 8)
    port = hub.serve(hub.service())
    silent = [port.raw() for _ in range(30)]
    try:
        eventually(lambda: port.listeners[0].pending == 8)
        port.connect("hub").close()
        assert silent[0].recv(1) == b""
        assert port.call(lambda: len(port.listeners[0]._waiting)) <= 8
    finally:
        for sock in silent:
            sock.close()


def test_stalled_handshakes_are_bounded_and_keep_nobody_out(
    hub: Any, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., Any]
) -> None:
    monkeypatch.setattr(module, "MAX_HANDSHAKES", 8)
    port = hub.serve(hub.service())
    stalled = [port.raw() for _ in range(30)]
    try:
        for sock in stalled:
            sock.sendall(b"\x16")
        eventually(lambda: 0 < port.listeners[0].pending <= 9)
        port.connect("hub").close()
        assert port.call(lambda: len(port.listeners[0]._tasks)) <= 9
    finally:
        for sock in stalled:
            sock.close()


def test_plain_answers_are_bounded_and_keep_nobody_out(
    hub: Any, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., Any]
) -> None:
    monkeypatch.setattr(module, "MAX_PLAIN", 4)
    monkeypatch.setattr(module, "_REQUEST_S", 5.0)
    port = hub.serve(hub.service())
    slow = [port.raw() for _ in range(20)]
    try:
        for sock in slow:
            sock.sendall(b"G")
        eventually(lambda: port.call(lambda: len(port.listeners[0]._plain)) == 4)
        with port.raw() as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert b"speaks HTTPS" in everything(sock)
    finally:
        for sock in slow:
            sock.close()


def test_bad_peers_leave_no_descriptor_and_no_noise(hub: Any, eventually: Callable[..., Any]) -> None:
    port = hub.serve(hub.service())
    port.connect("hub").close()
    count = lambda: len(os.listdir("/proc/self/fd")) if Path("/proc").is_dir() else 0  # noqa: E731
    eventually(lambda: port.listeners[0].pending == 0)
    time.sleep(0.1)
    before = count()
    reset = struct.pack("ii", 1, 0)
    for sent in (
        b"",
        b"\x16",
        b"\x16\x03\x01\x00\x05hello",
        b"\x16\x03\x01" + b"\xff" * 3000,
        b"GET",
        b"\x80\x2e\x01",
    ):
        for how in ("close", "reset", "wait"):
            with port.raw() as sock:
                sock.sendall(sent)
                if how == "reset":
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                elif how == "wait":
                    sock.shutdown(socket.SHUT_WR)
                    try:
                        everything(sock)
                    except ConnectionError:
                        pass
    eventually(lambda: port.listeners[0].pending == 0 and count() <= before)
    port.connect("hub").close()


def test_close_frees_the_port_and_keeps_open_connections(hub: Any, eventually: Callable[..., Any]) -> None:
    port = hub.serve(hub.service())
    with port.connect("hub") as client, port.raw() as silent, port.raw() as stalled:
        stalled.sendall(b"\x16\x03")
        eventually(lambda: port.listeners[0].pending == 2)
        port.call(lambda: port.listeners[0].close())
        port.call(lambda: port.listeners[0].wait_closed())
        assert silent.recv(1) == b"" and stalled.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            port.raw().close()
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"hello" in everything(client)


def test_large_bodies_pass_whole_both_ways(hub: Any) -> None:
    port = hub.serve(hub.service())
    body = os.urandom(900_000)
    with port.connect("hub") as client:
        client.settimeout(10)
        client.sendall(
            b"POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        client.sendall(body)
        assert everything(client).partition(b"\r\n\r\n")[2] == body


class Exhausted(socket.socket):
    """A listening socket in a process without a free descriptor."""

    free = False
    tries = 0

    def accept(self) -> tuple[socket.socket, Any]:
        self.tries += 1
        if not self.free:
            raise OSError(24, "Too many open files")
        return super().accept()


async def test_out_of_descriptors_waits_instead_of_spinning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ACCEPT_PAUSE_S", 0.1)
    told: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: told.append(context))
    sock = Exhausted()
    sock.bind(("127.0.0.1", 0))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listener = await module.serve_tls(asyncio.Protocol, sock, context, lambda: b"hint")
    reader, writer = await asyncio.open_connection(*sock.getsockname())
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    await asyncio.sleep(0.35)
    assert 2 <= sock.tries <= 5 and "accepting" in told[0]["message"]
    sock.free = True
    assert (await asyncio.wait_for(reader.read(), 5)).endswith(b"hint")
    writer.close()
    await writer.wait_closed()
    listener.close()
    await listener.wait_closed()


_SERVER = """
import asyncio, socket, sys
from pathlib import Path
import uvloop
from aiohttp import web
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.tls.listener import serve_tls
from relaydesk.engine.tls.service import TlsService
async def main():
    service = TlsService(Path(sys.argv[1]), "hub", (), None, None, SystemClock(), lambda t, s: None)
    service.prepare()
    app = web.Application()
    async def hello(_): return web.Response(text="hello")
    app.router.add_get("/", hello)
    runner = web.AppRunner(app)
    await runner.setup()
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    await serve_tls(runner.server, sock, service.server_context, lambda: b"")
    print(sock.getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
uvloop.run(main())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="resident memory is read from /proc")
def test_memory_of_an_idle_tls_peer_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stdout
    peers: list[ssl.SSLSocket] = []
    try:
        number = int(process.stdout.readline())
        context = ssl.create_default_context(cafile=str(tmp_path / "tls" / "ca.pem"))

        def join(count: int) -> int:
            for _ in range(count):
                raw = socket.create_connection(("127.0.0.1", number), timeout=10)
                peers.append(context.wrap_socket(raw, server_hostname="hub"))
                peers[-1].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert peers[-1].recv(4096).startswith(b"HTTP/1.1 200")
            time.sleep(0.2)
            status = Path(f"/proc/{process.pid}/status").read_text()
            return int(status.split("VmRSS:")[1].split()[0])

        first = join(30)
        each = (join(120) - first) / 120
    finally:
        for peer in peers:
            peer.close()
        process.stdin.close()
        process.wait(10)
        process.stdout.close()
    with capsys.disabled():
        print(f"\nidle TLS peer: {each:.1f} KiB resident (budget 48)")

"""Finding the node: the start rule's order, dead sockets, other users' nodes, and broken answers."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from relaydesk.store.lock import StateLock


@contextmanager
def answering(path: Path, body: bytes, status: str = "200 OK") -> Iterator[None]:
    """Something on a socket that answers every request alike."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    def serve() -> None:
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            with peer:
                if _read_request(peer):
                    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                    peer.sendall(head.encode() + body)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(5)


def _read_request(peer: socket.socket) -> bool:
    """Take in a whole request; false where the peer only knocked."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = peer.recv(65536)
        if not more:
            return False
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    while length is not None and len(body) < int(length[1]):
        body += peer.recv(65536)
    return True


def test_a_dead_nodes_socket_is_passed_over(cli: Any, node: Any, tmp_path: Path) -> None:
    dead = tmp_path / "dead.sock"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(dead))
    left.close()
    os.environ["RELAY_SOCKET"] = str(dead)
    try:
        assert cli("status").code == 0
    finally:
        del os.environ["RELAY_SOCKET"]


def test_attach_looks_nowhere_else(cli: Any, node: Any, tmp_path: Path) -> None:
    result = cli("status", "--attach", tmp_path / "none.sock")
    assert result.code == 3
    assert f"(looked at {tmp_path}/none.sock)" in result.err


def test_attach_finds_the_node(cli: Any, node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_STATE_DIR", "/nonexistent")
    assert cli("status", "--attach", node.socket).code == 0


def test_another_users_node_is_code_4_with_sudo(
    cli: Any, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closed(socket.socket):
        """Root may connect everywhere, so the kernel's refusal is what has to be played."""

        def connect(self, address: Any) -> None:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("relaydesk.surfaces.cli.attach.socket.socket", Closed)
    result = cli("model", "list")
    assert result.code == 4
    assert result.err.endswith("belongs to another user: `sudo relaydesk model list`\n")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", "200 OK"),
        (b"[]", "200 OK"),
        (b"[" * 100_000, "200 OK"),
        (b"\xff", "500 Oops"),
        (b'{"a":1}', "404 No"),
    ],
    ids=["empty", "list", "deep", "no text", "other"],
)
def test_a_broken_answer_is_one_sentence(cli: Any, tmp_path: Path, body: bytes, status: str) -> None:
    with answering(tmp_path / "odd.sock", body, status):
        for args in (("status",), ("model", "list"), ("model", "fit", "x"), ("request", "show", "r")):
            result = cli(*args, "--attach", tmp_path / "odd.sock")
            assert result.code == 1
            assert result.err.startswith("relaydesk: the node")
            assert result.err.count("\n") == 1


def test_a_faults_text_cannot_move_the_cursor(cli: Any, tmp_path: Path) -> None:
    body = b'{"error":{"code":"refused","message":"no \\u001b[2J way","hint":"\\u202eask"}}'
    with answering(tmp_path / "odd.sock", body, "403 No"):
        result = cli("status", "--attach", tmp_path / "odd.sock")
    assert (result.code, result.err) == (4, "relaydesk: no [2J way: ask\n")


def test_a_node_that_says_nothing_is_named(
    cli: Any, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relaydesk.surfaces.cli.attach.READ_S", 0.2)
    state_dir.mkdir(mode=0o700)
    with StateLock(state_dir), socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(state_dir / "control.sock"))
        deaf.listen(8)
        for args in (("status",), ("model", "list"), ("request", "show", "x"), ("config", "show")):
            result = cli(*args)
            assert (result.code, result.out) == (3, "")
            pid = os.getpid()
            assert result.err == (
                f"relaydesk: the node (process {pid}) does not answer within 0.2 s: it may be stopped or "
                f"very busy: look at its log, or end it with `kill {pid}` and start it again\n"
            )

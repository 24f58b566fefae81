"""Taps between real sockets."""

from __future__ import annotations

import gc
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from relaydesk.surfaces.demo.tap import Tap, Taps

OTHER = "127.0.0.1" if sys.platform == "darwin" else "127.9.9.9"


class _Echo(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while line := self.rfile.readline():
            self.wfile.write(self.client_address[0].encode() + b" " + line)
        self.wfile.write(b"end\n")


@contextmanager
def echo() -> Iterator[int]:
    """A server that says who asked; its port."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Echo) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield cast("int", server.server_address[1])
        server.shutdown()
        thread.join()


def talk(tap: Tap, *lines: bytes, source: str = "127.0.0.1") -> bytes:
    """Say ``lines`` through a tap, end, and give all that comes back."""
    with socket.create_connection(tap.address, timeout=10, source_address=(source, 0)) as connection:
        connection.sendall(b"".join(lines))
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while data := connection.recv(4096):
            answer += data
        return answer


def test_everything_is_passed_on_and_kept_with_its_source() -> None:
    with echo() as port, Taps() as taps:
        tap = taps.add("one", "127.0.0.1")
        tap.lead("127.0.0.1", port)
        assert talk(tap, b"a\n", b"b\n", source=OTHER) == f"{OTHER} a\n{OTHER} b\nend\n".encode()
        (kept,) = taps.conversations()
        assert (kept.to, kept.source) == ("one", OTHER)
        assert bytes(kept.inward) == b"a\nb\n"
        assert bytes(kept.outward) == f"{OTHER} a\n{OTHER} b\nend\n".encode()


def test_a_connection_that_is_half_closed_is_held() -> None:
    """asyncio refers to what waits for the other half only weakly."""
    with socket.create_server(("127.0.0.1", 0)) as server, Taps() as taps:
        tap = taps.add("one", "127.0.0.1")
        tap.lead("127.0.0.1", server.getsockname()[1])
        with socket.create_connection(tap.address, timeout=10) as connection:
            node, _ = server.accept()
            with node:
                connection.shutdown(socket.SHUT_WR)
                assert node.recv(100) == b""
                for _ in range(2):
                    gc.collect()
                    time.sleep(0.01)
                node.sendall(b"late\n")
            assert connection.recv(100) == b"late\n"


def test_who_connects_early_waits_for_the_node() -> None:
    with echo() as port, Taps() as taps:
        tap = taps.add("one", "127.0.0.1")
        threading.Timer(0.1, tap.lead, ("127.0.0.1", port)).start()
        assert talk(tap, b"a\n").endswith(b"end\n")


def test_nothing_is_kept_after_it_was_dropped() -> None:
    with echo() as port, Taps() as taps:
        tap = taps.add("one", "127.0.0.1")
        tap.lead("127.0.0.1", port)
        with socket.create_connection(tap.address, timeout=10) as connection:
            connection.sendall(b"a\n")
            assert connection.recv(100).endswith(b"a\n")
            (open_one,) = taps.conversations()
            taps.drop()
            assert talk(tap, b"b\n").endswith(b"end\n")
            connection.sendall(b"c\n")
            assert connection.recv(100).endswith(b"c\n")
        assert taps.conversations() == []
        assert b"c" not in open_one.inward


def test_a_node_that_is_gone_ends_connections() -> None:
    with Taps() as taps:
        tap = taps.add("one", "127.0.0.1")
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        tap.lead("127.0.0.1", port)
        try:
            assert talk(tap, b"a\n") == b""
        except OSError:
            pass  # reset already, or not connected any more


def test_closing_ends_what_is_open() -> None:
    before = threading.active_count()
    with echo() as port:
        with Taps() as taps:
            tap = taps.add("one", "127.0.0.1")
            tap.lead("127.0.0.1", port)
            connection = socket.create_connection(tap.address, timeout=10)
            connection.sendall(b"a\n")
            assert connection.recv(100).endswith(b"a\n")
        try:
            assert connection.recv(100) == b""
        except ConnectionResetError:
            pass
        connection.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(tap.address, timeout=10)
    assert threading.active_count() == before

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from relaydesk.engine.sdnotify import SdNotify


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """systemd's end of the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(os.fspath(tmp_path / "notify"))
        sock.setblocking(False)
        yield sock


def test_lines_arrive_as_one_datagram(manager: socket.socket) -> None:
    SdNotify({"NOTIFY_SOCKET": manager.getsockname()}, 1).send("READY=1", "STATUS=serving")
    assert manager.recv(4096) == b"READY=1\nSTATUS=serving"


@pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")
def test_abstract_address() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        name = f"relaydesk-test-{os.getpid()}"
        sock.bind("\0" + name)
        sock.setblocking(False)
        SdNotify({"NOTIFY_SOCKET": "@" + name}, 1).send("STOPPING=1")
        assert sock.recv(4096) == b"STOPPING=1"


def test_without_systemd_nothing_happens() -> None:
    SdNotify({}, 1).send("READY=1")


def test_a_manager_that_is_gone_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        SdNotify({"NOTIFY_SOCKET": str(tmp_path / "none")}, 1).send("READY=1")
    assert "could not be notified" in caplog.text


async def test_watchdog_pings_at_half_its_timeout(manager: socket.socket) -> None:
    notify = SdNotify({"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "40000"}, 1)
    task = asyncio.create_task(notify.run())
    await asyncio.sleep(0.11)
    task.cancel()
    await asyncio.wait([task])
    pings = 0
    while True:
        try:
            assert manager.recv(4096) == b"WATCHDOG=1"
        except BlockingIOError:
            break
        pings += 1
    assert 3 <= pings <= 7


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "-5"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "40000", "WATCHDOG_PID": "2"},
    ],
)
async def test_no_watchdog_no_pings(manager: socket.socket, environ: dict[str, str]) -> None:
    notify = SdNotify({"NOTIFY_SOCKET": manager.getsockname(), **environ}, 1)
    await asyncio.wait_for(notify.run(), 1)
    with pytest.raises(BlockingIOError):
        manager.recv(1)


async def test_watchdog_meant_for_us(manager: socket.socket) -> None:
    notify = SdNotify(
        {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "7"}, 7
    )
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(notify.run(), 0.05)
    assert manager.recv(100) == b"WATCHDOG=1"

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from relaydesk.store.db import Database


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    made = Database(tmp_path / "relaydesk.db")
    await made.open()
    yield made
    await made.close()


class SmallDisk:
    """A file system of 1 MiB, which can be filled and made read-only."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, leave: int = 0) -> None:
        room = os.statvfs(self.path)
        ballast = self.path / "ballast"
        ballast.write_bytes(b"\0" * max(0, room.f_bavail * room.f_frsize - leave))

    def empty(self) -> None:
        (self.path / "ballast").unlink(missing_ok=True)

    def read_only(self) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(self.path)], check=True, capture_output=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root on Linux")
    place = tmp_path / "disk"
    place.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(place)]
    if subprocess.run(options, capture_output=True, check=False).returncode != 0:
        pytest.skip("this container does not let root mount")
    yield SmallDisk(place)
    # Lazily: a failing test may have left a file open.
    ctypes.CDLL(None).umount2(os.fsencode(place), 2)

"""Files of a pull: room, hashes, and names that only ever hold whole content."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from relaydesk.core.errors import EnvError
from relaydesk.engine.tasks import spawn

T = TypeVar("T")

BLOCK: Final = 1 << 20
ROOM_LEFT: Final = 64 << 20  # bytes a pull leaves free, for the database and the log on the same disk
TEMP_PREFIX: Final = ".pull-"


class Stopped(Exception):
    """The caller of a long read went away."""


async def in_thread(work: Callable[[], T], stop: threading.Event | None = None) -> T:
    """Run blocking ``work`` beside the loop.

    A cancelled caller still waits for the thread, so that no file is closed or removed under it; ``stop``
    is set first, for work that looks at it.
    """
    task = spawn(asyncio.to_thread(work), name="pull-thread")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if stop is not None:
            stop.set()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise


@contextlib.contextmanager
def storage_faults(what: Path | str) -> Iterator[None]:
    """Turn the system's complaint about a file into one sentence."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise EnvError(
            "storage_failed",
            f"cannot write {what}: {reason}",
            "make room or change its permissions, then retry",
        ) from error


def need_room(folder: Path, need: int) -> None:
    """Raise `EnvError` ``storage_failed`` unless ``need`` bytes and a reserve fit beside ``folder``."""
    free = shutil.disk_usage(folder).free
    if free < need + ROOM_LEFT:
        raise EnvError(
            "storage_failed",
            f"{folder} has {free >> 20} MiB free and the model needs {-(-(need + ROOM_LEFT) >> 20)} MiB",
            "free some disk space or set another state directory",
        )


def sha256_of(path: Path, stop: threading.Event | None = None) -> str:
    """SHA-256 of a file, as hex. Raises `Stopped`."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while block := file.read(BLOCK):
            digest.update(block)
            if stop is not None and stop.is_set():
                raise Stopped
    return digest.hexdigest()


def publish(part: Path, target: Path) -> None:
    """Give finished content its name. The bytes are on disk before the name is, after a power cut too."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_temp(folder: Path) -> Path:
    """A private folder for one pull, named so that `sweep_temp` knows whose it is."""
    for number in range(1000):
        temp = folder / f"{TEMP_PREFIX}{os.getpid()}-{number}"
        try:
            temp.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return temp
    raise FileExistsError(17, "too many unfinished pulls", str(folder))


def sweep_temp(folder: Path) -> None:
    """Remove what pulls of processes that are gone left behind."""
    for temp in folder.glob(TEMP_PREFIX + "*"):
        owner = temp.name[len(TEMP_PREFIX) :].partition("-")[0]
        if owner.isdigit() and temp.is_dir() and not temp.is_symlink() and not _alive(int(owner)):
            shutil.rmtree(temp, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True

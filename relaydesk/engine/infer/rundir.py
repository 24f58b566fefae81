"""The private directory of this node's workers, and what a dead node left in it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

import msgspec
import psutil

from relaydesk.core.errors import EnvError

# Linux allows 107 bytes in a unix socket's address, macOS 103.
PATH_LIMIT: Final = 100
_GONE_TIMEOUT_S: Final = 2.0


class WorkerRecord(msgspec.Struct, frozen=True):
    """A running worker on disk: ``started`` tells its process from a later one with the same number."""

    pid: int
    started: str


def private_directory(path: Path) -> Path:
    """Make ``path`` a directory that only this user enters. Raises `EnvError` ``storage_failed``."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = path.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
            raise EnvError(
                "storage_failed", f"{path} is not a directory of this user", "remove it or choose another"
            )
        if stat.S_IMODE(info.st_mode) & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise EnvError(
            "storage_failed",
            f"{path} cannot be made a private directory ({error.strerror})",
            "check its rights",
        ) from error
    return path


def socket_path(directory: Path, name: str) -> str:
    """The socket of worker ``name``. Raises `EnvError` ``bad_setting`` where it is too long to bind."""
    path = str(directory / f"{name}.sock")
    if len(os.fsencode(path)) > PATH_LIMIT:
        raise EnvError(
            "bad_setting",
            f"the socket path {path} is longer than {PATH_LIMIT} bytes",
            "choose a shorter state or runtime directory",
        )
    return path


def record_worker(directory: Path, name: str, pid: int) -> None:
    """Note a worker, so that a later start can find it. A process already gone is not noted."""
    started = start_mark(pid)
    if started:
        data = msgspec.json.encode(WorkerRecord(pid, started))
        (directory / f"{name}.pid").write_bytes(data)


def forget_worker(directory: Path, name: str) -> None:
    """Remove what a worker left: its record and its socket."""
    for ending in ("pid", "sock"):
        (directory / f"{name}.{ending}").unlink(missing_ok=True)


def reap_strays(directory: Path) -> int:
    """End the workers a dead node left here and remove its sockets; how many were ended. Blocks.

    Only with no other node on this directory (the node's lock sees to that). A process is ended only where
    its number, start and boot are the recorded ones and it is this user's.
    """
    if not directory.is_dir():
        return 0
    ended = 0
    for file in directory.glob("*.pid"):
        try:
            record = msgspec.json.decode(file.read_bytes(), type=WorkerRecord)
        except (OSError, msgspec.MsgspecError):
            record = None
        if record is not None and _end(record):
            ended += 1
        file.unlink(missing_ok=True)
    for file in directory.glob("*.sock"):
        file.unlink(missing_ok=True)
    return ended


def start_mark(pid: int) -> str:
    """What tells this process from any other that had or will have its number; empty where it is gone."""
    try:
        stat_line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        # The name in parentheses may hold anything; the start is field 22, the 20th behind it.
        return f"{boot}:{stat_line.rpartition(')')[2].split()[19]}"
    except (OSError, IndexError):
        pass
    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.Error:
        return ""


def _end(record: WorkerRecord) -> bool:
    if record.pid <= 1 or not record.started:
        return False
    try:
        process = psutil.Process(record.pid)
        if process.uids().effective != os.geteuid() or start_mark(record.pid) != record.started:
            return False
        process.kill()
        process.wait(_GONE_TIMEOUT_S)
    except psutil.Error:
        return False
    return True

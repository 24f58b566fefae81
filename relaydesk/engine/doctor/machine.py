"""Checks of Python, memory, disks, directories, the port, the control socket and the clock."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import psutil

from relaydesk.config.listen import Listen
from relaydesk.config.paths import Paths
from relaydesk.core.ports import Clock
from relaydesk.engine.doctor.finding import Finding

_GIB: Final = 1 << 30
_LEAST_PYTHON: Final = (3, 11)
_LITTLE_MEMORY: Final = 2 * _GIB
_LITTLE_DISK: Final = 5 * _GIB  # less than one usual model
_NO_DISK: Final = 200 << 20  # less than the smallest one
# No machine that runs this can honestly have an earlier date: relaydesk did not exist.
_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_LAST_YEAR: Final = 2100
_TIMESYNC: Final = Path("/run/systemd/timesync")


def check_python() -> Finding:
    """The interpreter's version."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < _LEAST_PYTHON:
        return Finding("Python", "fail", f"this is Python {version}", "install 3.11 or later")
    return Finding("Python", "ok", f"{version} at {sys.executable}")


def check_memory() -> Finding:
    """RAM now."""
    memory = psutil.virtual_memory()
    text = f"{memory.available / _GIB:.1f} of {memory.total / _GIB:.1f} GiB of RAM are free"
    if memory.available < _LITTLE_MEMORY:
        return Finding("memory", "warn", text, "end other programs, or use small models such as smollm2")
    return Finding("memory", "ok", text)


def check_disk(directory: Path) -> Finding:
    """Free space where pulled models go."""
    place = _nearest(directory)
    try:
        free = shutil.disk_usage(place).free
    except OSError as error:
        return Finding(
            "model disk", "fail", f"{place} cannot be read ({error.strerror})", "check RELAY_MODEL_DIR"
        )
    text = f"{free / _GIB:.1f} GiB are free for models at {directory}"
    hint = "free some space, or choose another disk with RELAY_MODEL_DIR"
    if free < _NO_DISK:
        return Finding("model disk", "fail", text, hint)
    return (
        Finding("model disk", "warn", text, hint)
        if free < _LITTLE_DISK
        else Finding("model disk", "ok", text)
    )


def check_state(state: Path) -> Finding:
    """The state directory's owner and rights, by the rule a start applies."""
    name = "state directory"
    try:
        found = state.stat()
    except FileNotFoundError:
        return _creatable(name, state)
    except OSError as error:
        return Finding(name, "fail", f"{state} cannot be read ({error.strerror})", "check RELAY_STATE_DIR")
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode):
        return Finding(name, "fail", f"{state} is not a directory", "move it away, or set RELAY_STATE_DIR")
    if found.st_uid != os.geteuid():
        text = f"{state} belongs to user {found.st_uid}, and this is user {os.geteuid()}"
        return Finding(name, "fail", text, "run relaydesk as that user, or set RELAY_STATE_DIR")
    if mode & 0o022:
        return Finding(
            name, "fail", f"other users can write to {state} (mode {mode:04o})", f"`chmod 700 {state}`"
        )
    if not os.access(state, os.W_OK | os.X_OK):
        return Finding(name, "fail", f"{state} cannot be written", "make it writable, or set RELAY_STATE_DIR")
    return Finding(name, "ok", f"{state} is ours and writable")


def check_port(listen: Listen, node_runs: bool) -> Finding:
    """Whether the port clients use can be had. ``node_runs``: a node of ours holds it, as it should."""
    try:
        found = socket.getaddrinfo(
            listen.host or None, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        text = f"{listen} is no address of this machine ({error.strerror or error})"
        return Finding("port", "fail", text, "correct RELAY_LISTEN")
    for family, kind, protocol, _, address in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(address)
        except OSError as error:
            if error.errno == errno.EAFNOSUPPORT and len(found) > 1:
                continue
            return _no_port(listen, error, node_runs)
    return Finding("port", "ok", f"{listen} is free")


def check_socket(paths: Paths) -> Finding:
    """The control socket's place, where no node answers."""
    path = paths.socket
    if path.is_socket():
        text = f"no node is running; {path} was left by one that ended, and the next start removes it"
        return Finding("node", "ok", text)
    if path.exists():
        text = f"{path} is in the way of the control socket and is not a socket"
        return Finding("node", "fail", text, "move it, or choose another path with RELAY_SOCKET")
    return Finding("node", "ok", "no node is running: `relaydesk serve` starts one")


def check_clock(clock: Clock) -> Finding:
    """Certificates are only as good as the clock."""
    now = datetime.fromtimestamp(clock.wall_ms() / 1000, UTC)
    text = f"it is {now:%Y-%m-%d %H:%M} UTC by this machine"
    hint = "set the clock: clients refuse certificates of another time"
    if not now >= _EPOCH or now.year >= _LAST_YEAR:
        return Finding("clock", "fail", text, hint)
    if _TIMESYNC.is_dir() and not (_TIMESYNC / "synchronized").exists():
        return Finding("clock", "warn", f"{text}, and it is not synchronized", "`timedatectl set-ntp true`")
    return Finding("clock", "ok", text)


def _no_port(listen: Listen, error: OSError, node_runs: bool) -> Finding:
    if error.errno == errno.EADDRINUSE:
        if node_runs:
            return Finding("port", "ok", f"{listen} is the running node's")
        return Finding(
            "port", "fail", f"{listen} is in use by another program", "end it, or set RELAY_LISTEN"
        )
    if error.errno == errno.EACCES:
        hint = "choose a port from 1024 on with RELAY_LISTEN, or use `relaydesk service install`"
        return Finding("port", "fail", f"this user may not listen on {listen}", hint)
    return Finding("port", "fail", f"{listen} cannot be used ({error.strerror})", "correct RELAY_LISTEN")


def _creatable(name: str, state: Path) -> Finding:
    parent = _nearest(state)
    if os.access(parent, os.W_OK | os.X_OK):
        return Finding(name, "ok", f"{state} will be made by the first start")
    return Finding(name, "fail", f"{state} cannot be made: {parent} is not writable", "set RELAY_STATE_DIR")


def _nearest(path: Path) -> Path:
    """The closest part of a path that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path

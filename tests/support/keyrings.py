"""Keyrings for tests: one in memory that can be made to misbehave, and a real one on a bus of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import keyring
import keyring.backend
import keyring.errors
import psutil
import pytest


class MemoryKeyring(keyring.backend.KeyringBackend):
    """Keeps passwords in ``kept``. ``gate`` cleared makes every call hang; ``fails`` makes it raise."""

    priority = 0  # never chosen by itself

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.fails: Exception | None = None
        self.forgets = False
        self.calls: list[str] = []

    def _enter(self, call: str) -> None:
        self.calls.append(call)
        self.gate.wait(30)
        if self.fails is not None:
            raise self.fails

    def get_password(self, service: str, username: str) -> str | None:
        self._enter(f"get {username}")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._enter(f"set {username}")
        if not self.forgets:
            self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._enter(f"delete {username}")
        if self.kept.pop((service, username), None) is None:
            raise keyring.errors.PasswordDeleteError("not there")


@contextmanager
def in_use(backend: keyring.backend.KeyringBackend) -> Iterator[None]:
    """The keyring library uses ``backend``."""
    before = keyring.get_keyring()
    keyring.set_keyring(backend)
    try:
        yield
    finally:
        keyring.set_keyring(before)


@contextmanager
def real_keyring(home: Path) -> Iterator[dict[str, str]]:
    """The environment of a session with an unlocked gnome-keyring; nothing of it is left afterwards."""
    for needed in ("dbus-run-session", "gnome-keyring-daemon"):
        if shutil.which(needed) is None:
            pytest.skip(f"{needed} is not installed (Debian: apt-get install dbus gnome-keyring)")
    env = {"HOME": str(home), "XDG_RUNTIME_DIR": str(home), "PATH": os.environ["PATH"]}
    session = subprocess.Popen(
        ["dbus-run-session", "--", "sh", "-c", 'echo "$DBUS_SESSION_BUS_ADDRESS"; read _'],
        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert session.stdin is not None and session.stdout is not None
    try:
        env["DBUS_SESSION_BUS_ADDRESS"] = session.stdout.readline().strip()
        subprocess.run(
            ["gnome-keyring-daemon", "--unlock", "--components=secrets"],
            env=env, input="pass phrase", text=True, capture_output=True, timeout=30, check=True,
        )  # fmt: skip
        yield env
    finally:
        session.stdin.close()
        session.stdout.close()
        session.wait(10)
        _end_daemons(home)


def _end_daemons(home: Path) -> None:
    """gnome-keyring's daemon outlives its session; ours is known by its HOME."""
    for process in psutil.process_iter(["name"]):
        try:
            if "gnome-keyring" in process.info["name"] and process.environ().get("HOME") == str(home):
                process.kill()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # a zombie has no environment to look at

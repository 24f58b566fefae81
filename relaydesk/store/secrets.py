"""Secrets as files of their own, and what every place for secrets can do."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final, Protocol

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.store.files import atomic_write, file_error, private_dir, sweep_temp, sync_dir

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_MAX_BYTES: Final = 64 * 1024


class Secrets(Protocol):
    """Named secrets. Calls block: run them off the loop. Errors are ``secret_failed``, without a secret."""

    @property
    def place(self) -> str:
        """Where they are, for people."""
        ...

    def get(self, name: str) -> str | None:
        """The secret, or None where there is none."""
        ...

    def put(self, name: str, secret: str) -> None:
        """Store a secret."""
        ...

    def rotate(self, name: str, secret: str) -> str | None:
        """Replace a secret and give back the one that it was."""
        ...

    def remove(self, name: str) -> bool:
        """Delete a secret; false where there was none."""
        ...


class FileSecrets:
    """Named secrets under ``<state>/secrets``, one file each, mode 0600.

    Calls block on the disk: run them off the loop. A secret that is there and cannot be used is an error
    with the next step and never counts as absent, so that nobody makes a new one in its place. Errors are
    `EnvError` ``secret_failed``; no message holds a secret's text.
    """

    place: Final = "state directory"

    def __init__(self, state_dir: Path) -> None:
        self.directory = state_dir / "secrets"

    def prepare(self) -> None:
        """Make the directory and clear away what a killed writer left. Needs the state lock."""
        try:
            private_dir(self.directory)
            sweep_temp(self.directory)
        except EnvError as exc:
            raise EnvError("secret_failed", exc.fault.message, exc.fault.hint) from exc
        except OSError as exc:
            raise file_error(exc, "clean", self.directory, "secret_failed") from exc

    def path(self, name: str) -> Path:
        """Where a secret is. Raises `LocalError` ``invalid_request`` for a name that is none."""
        if not _NAME.fullmatch(name):
            raise LocalError("invalid_request", "a secret's name has 1 to 64 of a-z 0-9 _ -", param="name")
        return self.directory / name

    def names(self) -> tuple[str, ...]:
        """The names of all secrets. Files that are none of ours are passed over."""
        try:
            found = sorted(path.name for path in self.directory.iterdir())
        except FileNotFoundError:
            return ()
        except OSError as exc:
            raise file_error(exc, "list", self.directory, "secret_failed") from exc
        return tuple(name for name in found if _NAME.fullmatch(name))

    def get(self, name: str) -> str | None:
        """The secret without its last line end, or None where there is none."""
        path = self.path(name)
        try:
            # Not blocking: a FIFO in the file's place must not hang the start.
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise file_error(exc, "read the secret", path, "secret_failed") from exc
        try:
            _check_rights(os.fstat(handle), path)
            raw = os.read(handle, _MAX_BYTES + 1)
        except OSError as exc:
            raise file_error(exc, "read the secret", path, "secret_failed") from exc
        finally:
            os.close(handle)
        try:
            text = raw.decode().removesuffix("\n").removesuffix("\r") if len(raw) <= _MAX_BYTES else ""
        except UnicodeDecodeError:
            text = ""
        if not text:
            raise EnvError(
                "secret_failed",
                f"the secret's file {path} holds no usable text",
                "restore it from a backup, or remove it so that a new secret is made",
            )
        return text

    def put(self, name: str, secret: str) -> None:
        """Store a secret; the old one is there until the new one is on the disk."""
        path = self.path(name)
        data = secret.encode()
        if not secret or len(data) > _MAX_BYTES or secret.endswith(("\n", "\r")):
            raise LocalError("invalid_request", "a secret has 1 byte to 64 KiB and no line end behind it")
        try:
            private_dir(self.directory)
            atomic_write(path, data)
        except EnvError as exc:
            raise EnvError("secret_failed", exc.fault.message, exc.fault.hint) from exc

    def rotate(self, name: str, secret: str) -> str | None:
        """Replace a secret and give back the one that it was."""
        old = self.get(name)
        self.put(name, secret)
        return old

    def remove(self, name: str) -> bool:
        """Delete a secret; false where there was none."""
        path = self.path(name)
        try:
            path.unlink()
            sync_dir(self.directory)
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise file_error(exc, "remove the secret", path, "secret_failed") from exc
        return True


def _check_rights(found: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise EnvError("secret_failed", f"{path} is not a regular file", "move it away")
    if found.st_uid != os.geteuid():
        raise EnvError(
            "secret_failed",
            f"the secret's file {path} belongs to user {found.st_uid} and relaydesk runs as {os.geteuid()}",
            f"chown {os.geteuid()} {path}",
        )
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise EnvError(
            "secret_failed",
            f"other users can use the secret's file {path} (mode {stat.S_IMODE(found.st_mode):04o})",
            f"`chmod 600 {path}`",
        )

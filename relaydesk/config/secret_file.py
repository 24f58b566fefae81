"""The file behind a ``…_FILE`` setting."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from relaydesk.core.errors import LocalError

_MAX_BYTES: Final = 64 * 1024
# Container managers mount secrets here, readable by everybody inside a container that has one user.
_CONTAINER_SECRETS: Final = "/run/secrets/"


def read_secret_file(path: Path, name: str) -> str:
    """The text of a secret's file without its last line end; ``name`` is what named it.

    Raises `LocalError` ``bad_setting`` for a file that is missing, empty, no text, too large, or readable
    by every local user. The group may read: service managers hand out credentials with mode 0440.
    """
    try:
        with open(path, "rb", opener=open_regular) as file:
            mode = os.fstat(file.fileno()).st_mode
            raw = file.read(_MAX_BYTES + 1)
    except OSError as exc:
        raise LocalError(
            "bad_setting",
            f"{name} names {path}, which cannot be read ({exc.strerror or exc})",
            "create the file with the secret in it, mode 0600",
            param=name,
        ) from exc
    if mode & stat.S_IROTH and not str(path).startswith(_CONTAINER_SECRETS):
        raise LocalError(
            "bad_setting", f"every local user can read {path} of {name}", f"`chmod 600 {path}`", param=name
        )
    try:
        text = raw.decode().removesuffix("\n").removesuffix("\r") if len(raw) <= _MAX_BYTES else ""
    except UnicodeDecodeError:
        text = ""
    if not text:
        raise LocalError(
            "bad_setting",
            f"{path} of {name} holds no secret",
            "write the secret into it as one line",
            param=name,
        )
    return text


def open_regular(path: str, flags: int) -> int:
    """Open without waiting: a FIFO in the place of the file must not hang the start."""
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("not a regular file")
    return handle

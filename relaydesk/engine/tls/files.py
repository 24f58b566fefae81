"""Reading certificate and key files; `store.files` writes them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from relaydesk.core.errors import EnvError

# More than any certificate chain; a device or a log given by mistake must not fill the memory.
_MAX_BYTES = 1 << 20


def reason(exc: OSError) -> str:
    """The system's words for an error, without number and path."""
    return exc.strerror or type(exc).__name__


def read_file(path: Path, *, forbidden: int = 0, advice: str = "") -> bytes:
    """A small file's bytes. ``forbidden`` are the mode bits that a key file must not have.

    The rights are those of the opened file, so that nothing can be exchanged between look and read.
    Raises `EnvError` ``tls_failed``; FileNotFoundError is left to the caller, for whom it may be normal.
    """
    try:
        # Not blocking: a FIFO in the file's place must not hang the start.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise EnvError("tls_failed", f"{path} is not a regular file", "name a PEM file")
            if info.st_mode & forbidden:
                raise EnvError(
                    "tls_failed",
                    f"the key file {path} can be read by other users (mode {stat.S_IMODE(info.st_mode):04o})",
                    f"run `chmod {0o640 & ~forbidden:o} {path}`{advice}",
                )
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise EnvError(
            "tls_failed", f"cannot read {path} ({reason(exc)})", "check its owner and rights"
        ) from exc
    if len(data) > _MAX_BYTES:
        raise EnvError("tls_failed", f"{path} is larger than 1 MiB", "name a PEM file")
    return data

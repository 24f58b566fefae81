"""A model file that is there already, registered where it lies: relaydesk never writes or deletes it."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relaydesk.core.errors import EnvError, LocalError
from relaydesk.core.pool.gguf import GgufHeader, combine, read_header
from relaydesk.core.pool.reference import is_projector, split_part
from relaydesk.core.text import safe_text
from relaydesk.engine.pull.disk import in_thread
from relaydesk.engine.pull.naming import suggest_name
from relaydesk.engine.pull.siblings import parts_of, projector_beside

# Headers of models have 1 to 20 MiB: nearly all of it is the vocabulary.
_FIRST_READ: Final = 4 << 20
_LAST_READ: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class InPlace:
    """A checked file: ``path`` is what the engine opens, ``size`` the bytes of all parts, ``header`` theirs.

    No hash: reading tens of gigabytes to add a file is not worth it. ``projector`` is one that lies beside
    the model and plainly belongs to it.
    """

    path: Path
    files: tuple[Path, ...]
    size: int
    header: GgufHeader
    suggested_name: str
    projector: Path | None


async def look_at(path: str | Path) -> InPlace:
    """Check a file that is to be registered. Any part of a split model stands for all.

    Raises `LocalError` ``not_found``, ``invalid_request`` or ``bad_model_file``, `EnvError`
    ``storage_failed``.
    """
    return await in_thread(lambda: look_at_blocking(path))


def look_at_blocking(path: str | Path) -> InPlace:
    """`look_at` for callers that are in a thread already."""
    text = str(path)
    if not text or "\0" in text:
        raise LocalError("invalid_request", "the path of the model file is empty or no path", "give a file")
    file = Path(os.path.abspath(Path(text).expanduser()))
    _check_regular(file)
    files = parts_of(file)
    headers = [header_of(part) for part in files]
    header = combine(headers, what=safe_text(files[0].name)) if len(files) > 1 else headers[0]
    if header.is_projector:
        raise LocalError(
            "invalid_request",
            f"{safe_text(str(file))} is a projector, not a model",
            "add the model it belongs to and name this as its projector",
        )
    split = split_part(files[0].name)
    stem = split[0] if split else files[0].name.removesuffix(".gguf").removesuffix(".GGUF")
    return InPlace(
        path=files[0],
        files=files,
        size=header.file_bytes,
        header=header,
        suggested_name=suggest_name(stem, header.name),
        projector=projector_beside(files[0]),
    )


def _check_regular(file: Path) -> None:
    shown = safe_text(str(file))
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        raise LocalError("not_found", f"there is no file {shown}", "check the path") from None
    except OSError as error:
        raise _unreadable(file, error) from None
    if stat.S_ISDIR(mode):
        raise LocalError("bad_model_file", f"{shown} is a directory", _what_is_in(file))
    if not stat.S_ISREG(mode):
        raise LocalError("bad_model_file", f"{shown} is a device, pipe or socket", "give a GGUF file")


def _what_is_in(folder: Path) -> str:
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.name.lower().endswith(".gguf"))
    except OSError:
        names = []
    models = [safe_text(name, 80) for name in names if not is_projector(name)]
    more = f" and {len(models) - 5} more" if len(models) > 5 else ""
    return f"give one of its files: {', '.join(models[:5])}{more}" if models else "give a GGUF file"


def header_of(file: Path) -> GgufHeader:
    """What one GGUF file says about itself. Blocks on the disk."""
    try:
        # Not blocking: the path may have become a pipe since it was looked at.
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return _header_in(fd, safe_text(str(file)))
        finally:
            os.close(fd)
    except OSError as error:
        raise _unreadable(file, error) from None


def _header_in(fd: int, what: str) -> GgufHeader:
    """Read the beginning of the file, and more of it only where that did not do.

    Not mapped into memory: a file that another program shortens meanwhile, or a disk that fails, would end
    the whole node with SIGBUS.
    """
    size = os.fstat(fd).st_size
    first = _beginning(fd, min(size, _FIRST_READ))
    try:
        return read_header(first, size if len(first) == _FIRST_READ else len(first), what=what)
    except LocalError:
        if len(first) < _FIRST_READ:
            raise
    del first
    more = _beginning(fd, min(size, _LAST_READ))
    return read_header(more, size if len(more) == _LAST_READ else len(more), what=what)


def _beginning(fd: int, count: int) -> bytearray:
    """The file's first ``count`` bytes, or as many as there still are."""
    data = bytearray(count)
    with memoryview(data) as view:
        done = 0
        while done < count and (read := os.preadv(fd, [view[done:]], done)):
            done += read
    del data[done:]
    return data


def _unreadable(file: Path, error: OSError) -> EnvError:
    reason = (error.strerror or type(error).__name__).lower()
    rights = error.errno in (errno.EACCES, errno.EPERM)
    hint = "check its permissions" if rights else "check the path"
    return EnvError("storage_failed", f"cannot read {safe_text(str(file))}: {reason}", hint)

"""Looking for what must not be anywhere: in what was sent, written, logged and held in memory.

Each place is searched for something planted there first. A search that does not find that proves nothing.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_PIECE: Final = 16 * 1024 * 1024

Read = Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere to look: ``read`` gives all that is there. ``planted`` is what must be found in it."""

    name: str
    read: Read
    planted: str
    secrets: tuple[str, ...]


def search(places: Iterable[Place]) -> dict[str, Any]:
    """Look into every place: ``searched`` names, the number ``found`` and where, and ``planted_found``.

    A place that cannot be read is ``not_searched``.
    """
    searched, not_searched, where, missed = [], [], [], []
    for place in places:
        try:
            found = _found(place)
        except OSError as error:
            not_searched.append(f"{place.name}: {error.strerror or error}")
            continue
        searched.append(place.name)
        if place.planted not in found:
            missed.append(place.name)
        where += [place.name for secret in place.secrets if secret in found]
    return {
        "searched": searched,
        "not_searched": not_searched,
        "found": len(where),
        "found_in": where,
        "planted_found": bool(searched) and not missed,
        **({"planted_missed": missed} if missed else {}),
    }


def spellings(text: str) -> tuple[bytes, ...]:
    """A text as it stands, in hex, and in base64 at each of the three places where it can begin there."""
    raw = text.encode()
    found = [raw, raw.hex().encode()]
    for shift in range(3):
        # Of its characters, six bits each, those that do not depend on what stands beside it.
        first, end = -(-8 * shift // 6), 8 * (shift + len(raw)) // 6
        found.append(base64.b64encode(bytes(shift) + raw)[first:end])
    return tuple(found)


def files(folder: Path, *, without: tuple[Path, ...] = ()) -> Iterator[bytes]:
    """Every file below ``folder``, but for those below ``without``."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(path.is_relative_to(each) for each in without):
            yield path.read_bytes()


def memory(pid: int) -> Iterator[bytes]:
    """What a child process of this one holds in memory that it can write to. Raises `OSError`."""
    if sys.platform != "linux":
        raise OSError("this system does not show a process's memory")
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as data:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            place, rights, *_ = line.split(maxsplit=2)
            if rights[:2] == "rw":
                low, high = (int(text, 16) for text in place.split("-"))
                yield _mapping(data, low, high)


def _mapping(data: Any, low: int, high: int) -> bytes:
    read = bytearray()
    try:
        for at in range(low, high, _PIECE):
            data.seek(at)
            read += data.read(min(_PIECE, high - at))
    except OSError:
        pass  # it was given back meanwhile
    return bytes(read)


def _found(place: Place) -> set[str]:
    """What of all that is looked for is there. One part at a time: a process's memory is large."""
    wanted = {text: spellings(text) for text in (place.planted, *place.secrets)}
    return {
        text
        for part in place.read()
        for text, spelled in wanted.items()
        if any(each in part for each in spelled)
    }

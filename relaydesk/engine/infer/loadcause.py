"""Why a model did not load, out of what the engine printed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LoadCause:
    """One clause and the next step."""

    reason: str
    hint: str


_SMALLER: Final = "choose a smaller context, fewer slots or a smaller file"
_AGAIN: Final = "pull or add the file again"
# Pattern, reason, next step; the most telling first, because one failure prints several of them.
_CAUSES: Final[tuple[tuple[re.Pattern[str], str, str], ...]] = (
    (
        re.compile(r"failed to allocate (?P<device>\w{1,32}) buffer of size (?P<bytes>\d{1,20})"),
        "there is not enough memory, {device} has no {mib} MiB left",
        _SMALLER,
    ),
    (
        re.compile(r"(?:unable to allocate|out of memory|insufficient memory|bad_alloc)"),
        "there is not enough memory",
        _SMALLER,
    ),
    (
        re.compile(r"unknown model architecture: '(?P<name>.*)'"),
        "this engine does not know the architecture {name!r}",
        "choose another model, or update the engine library",
    ),
    (re.compile(r"invalid magic characters|failed to read magic"), "the file is not a GGUF file", _AGAIN),
    (
        re.compile(r"failed to open GGUF file '.*' \((?P<why>.*)\)"),
        "the file cannot be opened ({why})",
        _AGAIN,
    ),
    (
        re.compile(r"couldn't bind HTTP server socket"),
        "the engine's socket could not be opened",
        "check the rights of the runtime directory",
    ),
    (re.compile(r"error loading model: (?P<why>.*)"), "{why}", _AGAIN),
    (re.compile(r"(?P<why>(?:failed|error|unsupported|invalid).*)", re.IGNORECASE), "{why}", _AGAIN),
)


_MEMORY: Final = tuple(pattern for pattern, *_ in _CAUSES[:2])


def ran_out_of_memory(lines: Sequence[str]) -> bool:
    """Whether the kept lines of a log say that memory was short."""
    return any(pattern.search(line) for line in lines for pattern in _MEMORY)


def explain_failure(lines: Sequence[str]) -> LoadCause | None:
    """The cause told by the kept lines of a log, None where they tell none."""
    for pattern, reason, hint in _CAUSES:
        for line in lines:
            if match := pattern.search(line):
                found = match.groupdict()
                mib = -(-int(found["bytes"]) // _MIB) if "bytes" in found else 0
                return LoadCause(reason.format(**found, mib=mib), hint)
    return None

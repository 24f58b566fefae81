"""Versions of the wire, and what each of them promises (wire §2.2, §5.3).

Both readings are strict and fail closed: what is not plainly a version promises nothing.
"""

from __future__ import annotations

import re
from typing import Final

PROTO_VERSION: Final = "9.10"
OUR_MAJOR: Final = 9
OUR_MINOR: Final = 10
# What a relay counts as until a probe of it succeeded: usable, and held to no minor feature.
UNPROBED: Final = "9.0"

HOP_MARKER: Final = (9, 1)
TIGHT_BOUND: Final = (9, 2)

# Not `int`, which takes signs, spaces, underscores and digits of other scripts.
_SEGMENT: Final = re.compile(r"[0-9]{1,9}")
# An absent version is the oldest there was.
_ABSENT: Final = "1.0"


def compatible(version: str, our_major: int = OUR_MAJOR) -> bool:
    """Whether a node of this version speaks our wire: only what stands before the first dot counts."""
    return _number((version or _ABSENT).partition(".")[0]) == our_major


def at_least(version: str, major: int, minor: int) -> bool:
    """Whether ``version`` is ``major.minor`` or later. A missing minor is 0, a third segment is not read."""
    segments = (version or _ABSENT).split(".", 2)
    first = _number(segments[0])
    second = _number(segments[1]) if len(segments) > 1 and segments[1] else 0
    return first is not None and second is not None and (first, second) >= (major, minor)


def marks_hops(version: str) -> bool:
    """Whether a relay that advertised this version promised the hop marker, so that its absence counts."""
    return at_least(version, *HOP_MARKER)


def newer_than_ours(version: str) -> bool:
    """Whether a node is ahead of what we speak: a sign that our own version lags the network."""
    return at_least(version, OUR_MAJOR, OUR_MINOR + 1)


def _number(segment: str) -> int | None:
    return int(segment) if _SEGMENT.fullmatch(segment) else None

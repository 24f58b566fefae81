"""What a pull reports while it runs and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Stage = Literal["asking", "downloading", "checking", "unpacking"]


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a pull stands: bytes done of ``total`` (0: not known yet), bytes a second over the last seconds.

    ``resumable`` false: stopped now, the pull starts from the beginning next time.
    """

    stage: Stage
    done: int = 0
    total: int = 0
    rate: float = 0.0
    resumable: bool = True


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class PulledModel:
    """A model relaydesk wrote itself (so ``owned`` in the registry).

    ``path`` is what the engine opens; ``files`` are all parts in order, the projector not among them.
    ``size`` is the sum of the parts in bytes, ``sha256`` that of ``path`` alone. ``source`` is the
    reference, for people.
    """

    path: Path
    files: tuple[Path, ...]
    size: int
    sha256: str
    source: str
    suggested_name: str
    projector: Path | None = None


def ignore_progress(progress: Progress) -> None:
    """For callers that show nothing."""
    del progress

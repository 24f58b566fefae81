"""A hub with 500 requests always under way, headless or inside a console, and a look into its loop."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from tests.bench.rig import CHAT, CTX, NAME, BenchHub, Load
from tests.bench.terminal import Terminal

# Streams that run all the time, over models whose engines make two tokens a second for each.
ROWS: Final = 500
MODELS: Final = tuple(f"slow-{number}" for number in range(8))
SLOTS: Final = 64
REQUESTS: Final = "3"


class Crowd(Load):
    """The crowd's process."""

    MODULE = "tests.bench.crowd"

    @contextmanager
    def at(self, hub: CrowdHub) -> Iterator[None]:
        """`ROWS` streams at a hub."""
        self("gather", target=hub.target(), path=CHAT, models=MODELS, count=ROWS)
        yield
        self("scatter")


class Stalls:
    """The two doubles that `site/sitecustomize.py` keeps."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_bytes(bytes(16))

    def reset(self) -> None:
        """Begin anew. In place: the other side has the file mapped."""
        with self._path.open("r+b") as file:
            file.write(bytes(16))

    def read(self) -> tuple[float, float]:
        """Milliseconds: the longest a timer waited for its turn, and the most processor time in one turn."""
        worst, most = struct.unpack("2d", self._path.read_bytes())
        return worst, most


class CrowdHub(BenchHub):
    """A hub of scripted engines for a crowd, headless or (``embedded``) inside a console."""

    def __init__(self, python: str, *, embedded: bool = False, probed: bool = False) -> None:
        super().__init__(engine=python, host_memory_mb="65536", log_level="warning")
        self.stalls = Stalls(self.dir / "stalls") if probed else None
        if probed:
            self._env["BENCH_STALLS"] = str(self.dir / "stalls")
        self._embedded = embedded
        self._terminal: Terminal | None = None

    def start(self) -> Self:
        if not self._embedded:
            return super().start()
        self._terminal = Terminal(self._env).__enter__()
        self._terminal.wait_for("no alerts")
        self.url = self.status()["listening"][0]
        self.key = self.command("show-default-key")["key"]
        return self

    def __exit__(self, *given: Any) -> None:
        if self._terminal is not None:
            self._terminal.__exit__(*given)
        super().__exit__(*given)

    def ready(self, model: Path) -> Self:
        """Load the crowd's models, and one that answers at once."""
        for name in (*MODELS, NAME):
            self.add(model, name, ctx=CTX, slots=SLOTS)
            self.load(name)
        return self

    @property
    def terminal(self) -> Terminal:
        """The console's terminal."""
        assert self._terminal is not None
        return self._terminal

    @property
    def pid(self) -> int:
        return self.terminal.process.pid if self._embedded else super().pid

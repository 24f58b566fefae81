"""What rows run on: the load generator, hubs, bare workers, and a stand-in engine. All on loopback.

Everything a rig starts is a child of this process and is ended by it, by handle.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import psutil

from tests.support.hub import Hub

# The configuration of every run with an engine; printed with the figures.
NAME: Final = "tiny"
SLOTS: Final = 8
CTX: Final = 1024
CHAT: Final = "/v1/chat/completions"
HERE: Final = Path(__file__).parent
MODEL_FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"

_ANSWER_S: Final = 120.0


class NoModelError(Exception):
    """The row needs a real model and none is here."""


@dataclass
class Context:
    """A run's settings, and what rows share."""

    pairs: int
    model: Path | None
    note: Callable[[str], None]
    stack: ExitStack = field(default_factory=ExitStack)
    _load: Load | None = None

    @property
    def load(self) -> Load:
        """The load generator, started when first used."""
        if self._load is None:
            self._load = self.stack.enter_context(Load())
        return self._load

    def need_model(self) -> Path:
        """The real model. Raises `NoModelError`."""
        if self.model is None:
            raise NoModelError("no real model: give --model FILE or set RELAYDESK_TEST_MODEL")
        return self.model


def find_model(given: str) -> Path | None:
    """The model named, else where the tests keep theirs."""
    named = given or os.environ.get("RELAYDESK_TEST_MODEL", "")
    if named:
        return Path(named).resolve()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relaydesk" / "models"
    return next(iter(sorted(cache.rglob(MODEL_FILE))), None)


class Child:
    """A child process that speaks JSON lines and ends with its input."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=HERE.parent.parent, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def line(self) -> dict[str, Any]:
        """Its next line. Raises `RuntimeError` where it ended."""
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        if not text:
            raise RuntimeError(f"{self._arguments[-1]} ended by itself")
        found: dict[str, Any] = json.loads(text)
        return found


class Load(Child):
    """The load generator."""

    MODULE = "tests.bench.client"

    def __init__(self) -> None:
        super().__init__(sys.executable, "-m", self.MODULE)

    def __call__(self, op: str, **plan: Any) -> dict[str, Any]:
        """Carry out one plan. Raises `RuntimeError` with what went wrong."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"op": op, **plan}) + "\n")
        self.process.stdin.flush()
        reply = self.line()
        if "error" in reply:
            raise RuntimeError(f"load {op}: {reply['error']}")
        return reply


@contextmanager
def temporary() -> Iterator[Path]:
    """A directory with a path short enough for a socket's address."""
    with tempfile.TemporaryDirectory(prefix="rd-") as name:
        yield Path(name)


@contextmanager
def bare_worker(model: Path, name: str = NAME, *, python: str = "") -> Iterator[dict[str, Any]]:
    """A worker asked directly: where it listens, its key and pid. ``python`` may be a stand-in."""
    with temporary() as directory:
        more = [python] if python else []
        with Child(
            sys.executable, "-m", "tests.bench.bare", str(model), str(directory / "w"), name, *more
        ) as child:
            yield child.line()


@contextmanager
def scripted_python() -> Iterator[str]:
    """A program that is started like an interpreter and becomes the scripted engine."""
    with temporary() as directory:
        path = directory / "python"
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HERE / "scripted_engine.py"}"\n')
        path.chmod(0o700)
        yield str(path)


class BenchHub(Hub):
    """A hub with room for many requests; ``engine`` is a stand-in for its engines, ``profile`` a file."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        tls: bool = False,
        engine: str = "",
        profile: str = "",
        **settings: Any,
    ) -> None:
        super().__init__(directory, tls=tls, metrics=False, **settings)
        if engine or profile:
            self._env["PYTHONPATH"] = str(HERE / "site")
        if engine:
            self._env["BENCH_ENGINE"] = engine
        if profile:
            self._env["BENCH_PROFILE"] = profile

    @property
    def environment(self) -> dict[str, str]:
        """What its process is started with; commands that shall find it need the same."""
        return self._env

    def target(self) -> dict[str, Any]:
        """This hub for the load generator."""
        found: dict[str, Any] = {"port": self.port, "key": self.key}
        if self.url.startswith("https:"):
            found["ca"] = str(self.ca)
        return found

    def serve(self, model: Path, name: str = NAME) -> Self:
        """Register and load a model."""
        self.add(model, name, ctx=CTX, slots=SLOTS)
        self.load(name)
        return self

    @property
    def pid(self) -> int:
        """The hub's own process."""
        assert self.process is not None
        return self.process.pid


def cpu_s(pid: int) -> float:
    """Processor seconds of one process, its children not among them."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def rss(pid: int) -> int:
    """Resident bytes of one process."""
    return int(psutil.Process(pid).memory_info().rss)


def machine() -> dict[str, Any]:
    """What the figures were measured on and how busy that was."""
    name = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = next(
                (line.partition(":")[2].strip() for line in file if line.startswith("model name")), ""
            )
    except OSError:
        pass
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cpu": name,
        "python": sys.version.split()[0],
        "load_average": [round(each, 2) for each in os.getloadavg()],
        "busy_percent": psutil.cpu_percent(0.5),
    }


def quiet(limit_percent: float, wait_s: float) -> float:
    """Wait until the machine is less busy than ``limit_percent``, at most ``wait_s``; how busy it is."""
    deadline = time.monotonic() + wait_s
    while (busy := psutil.cpu_percent(0.5)) > limit_percent and time.monotonic() < deadline:
        time.sleep(0.5)
    return float(busy)

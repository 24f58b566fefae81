"""A real reverse proxy in front of a node: set right, set wrong, and mended by what a check printed."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

from tests.support.edges.printed import mended
from tests.support.pebble import free_ports

_SBIN: Final = "/usr/sbin:/usr/local/sbin:/sbin"


@dataclass(frozen=True)
class Way:
    """A way of being wrong. ``swaps`` are texts of the right configuration and what stands there instead;
    ``finds`` are the codes of everything that a check must say of it, and of nothing else.
    """

    swaps: tuple[tuple[str, str], ...]
    finds: frozenset[str]


def way(finds: str, *swaps: tuple[str, str]) -> Way:
    """``finds``: codes with spaces between."""
    return Way(swaps, frozenset(finds.split()))


@dataclass(frozen=True)
class Product:
    """A reverse proxy of Debian's.

    ``right`` is its configuration, in which %DIR%, %PORT%, %NODE%, %NODE_HOST% and %NODE_PORT% stand.
    ``command`` starts it in the foreground, from its path, a folder, a configuration and an address.
    ``places`` are the phrases by which remedies name where their text goes, and the beginning of the line
    behind which that is; empty is behind the first of the file. ``ways`` are by name.
    """

    name: str
    program: str
    package: str
    right: str
    command: Callable[[str, Path, Path, str], list[str]]
    places: Mapping[str, str]
    ways: Mapping[str, Way]

    @property
    def path(self) -> str | None:
        """The program, None where it is not installed."""
        return shutil.which(self.program) or shutil.which(self.program, path=_SBIN)

    def configuration(self, wrong: str = "") -> str:
        """Right, or wrong in the way of this name."""
        text = self.right
        for old, new in self.ways[wrong].swaps if wrong else ():
            assert text.count(old) == 1, (self.name, wrong, old)
            text = text.replace(old, new)
        return text


class Edge:
    """One of them, before what listens at ``upstream`` (``HOST:PORT``), at ``url``. A context manager.

    ``config`` is the configuration as its operator sees it; `mend` applies remedies to it and starts anew.
    """

    def __init__(self, product: Product, upstream: str, wrong: str = "") -> None:
        if product.path is None:
            pytest.skip(f"{product.name} is not installed (Debian: apt-get install {product.package})")
        self.product = product
        self.config = product.configuration(wrong)
        self._upstream = upstream
        (self._port,) = free_ports(1)
        self.address = f"127.0.0.1:{self._port}"
        self.url = f"http://{self.address}"
        self.dir = Path(tempfile.mkdtemp(prefix="rd-edge-"))
        # Some of them give up their rights before they look into it.
        self.dir.chmod(0o755)
        self._process: subprocess.Popen[bytes] | None = None

    def mend(self, *remedies: str) -> None:
        """Do what the remedies say, word for word, and start with that."""
        for remedy in remedies:
            self.config = mended(self.config, remedy, self.product.places)
        self.stop()
        self.start()

    def start(self) -> None:
        """Start it and wait until it listens."""
        assert self.product.path is not None
        file = self.dir / "config"
        host, _, port = self._upstream.partition(":")
        values = {"DIR": self.dir, "PORT": self._port, "NODE": self._upstream}
        text = self.config
        for name, value in {**values, "NODE_HOST": host, "NODE_PORT": port}.items():
            text = text.replace(f"%{name}%", str(value))
        file.write_text(text)
        # Nothing of its own may land in anybody's home.
        env = {
            "PATH": f"/usr/local/bin:/usr/bin:/bin:{_SBIN}",
            "HOME": str(self.dir),
            "XDG_CONFIG_HOME": str(self.dir),
            "XDG_DATA_HOME": str(self.dir),
        }
        with (self.dir / "output").open("wb") as output:
            self._process = subprocess.Popen(
                self.product.command(self.product.path, self.dir, file, self.address),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=env,
                cwd=self.dir,
            )
        deadline = time.monotonic() + 30
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self.dir / "output").read_text(errors="replace")
                self.stop()
                raise AssertionError(f"{self.product.name} did not start:\n{said}\nwith\n{text}")
            time.sleep(0.02)

    def stop(self) -> None:
        """End it, where it runs."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), 5).close()
        except OSError:
            return False
        return True

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

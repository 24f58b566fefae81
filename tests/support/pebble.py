"""A real ACME server: Debian's pebble with its DNS server, on ports of its own. Skips where it is not."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from relaydesk.core.tls.names import Constraints, home_constraints, parse_name
from relaydesk.engine.clock import SystemClock
from relaydesk.engine.tls.authority import open_authority
from relaydesk.engine.tls.leaf import ensure_leaf

# Below those that Linux hands out by itself: between the look and the use no neighbour gets one by chance.
# Another process begins elsewhere.
_PORTS = itertools.cycle(range(10_000, 30_000))
for _ in range(os.getpid() * 37 % 20_000):
    next(_PORTS)


def free_ports(count: int) -> list[int]:
    """Ports that nobody has at this moment."""
    found: list[int] = []
    while len(found) < count:
        port = next(_PORTS)
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
    return found


def server_identity(directory: Path) -> tuple[Path, Path]:
    """A CA of its own and a file with key and certificate for 127.0.0.1."""
    constraints: Constraints = home_constraints("pebble", [])
    authority = open_authority(directory, constraints, SystemClock())
    leaf = ensure_leaf(directory, authority, (parse_name("127.0.0.1"), "localhost"), SystemClock())
    return authority.path, leaf.path


class Pebble:
    """``directory_url``, the ``ca`` that vouches for it, and the ``http_port`` where names are proved.

    Every name leads to 127.0.0.1. ``validity_s`` is the life of the certificates it makes; with ``reuse``
    a name that was proved once is not asked about again.
    """

    def __init__(self, directory: Path, *, validity_s: int = 3600, reuse: bool = False) -> None:
        if shutil.which("pebble") is None or shutil.which("pebble-challtestsrv") is None:
            pytest.skip("pebble is not installed (Debian: apt-get install pebble)")
        self.dir = directory
        self.ca, self._pair = server_identity(directory)
        self.http_port, self._port, self._manage, self._dns, self._challtest = free_ports(5)
        self._validity_s = validity_s
        self._env = {
            "PATH": os.environ["PATH"],
            "PEBBLE_VA_NOSLEEP": "1",
            "PEBBLE_WFE_NONCEREJECT": "0",
            "PEBBLE_AUTHZREUSE": "100" if reuse else "0",
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def directory_url(self) -> str:
        return f"https://127.0.0.1:{self._port}/dir"

    @property
    def challtest_url(self) -> str:
        """Where the DNS server is told its records."""
        return f"http://127.0.0.1:{self._challtest}"

    def root(self, path: Path) -> Path:
        """The root that vouches for what it makes, written to ``path``; another one at every start."""
        context = ssl.create_default_context(cafile=str(self.ca))
        with urllib.request.urlopen(
            f"https://127.0.0.1:{self._manage}/roots/0", context=context, timeout=10
        ) as answer:
            path.write_bytes(answer.read())
        return path

    def __enter__(self) -> Self:
        config = {
            "listenAddress": f"127.0.0.1:{self._port}",
            "managementListenAddress": f"127.0.0.1:{self._manage}",
            "certificate": str(self._pair),
            "privateKey": str(self._pair),
            "httpPort": self.http_port,
            "tlsPort": 1,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": False,
            "certificateValidityPeriod": self._validity_s,
        }
        (self.dir / "pebble.json").write_text(json.dumps({"pebble": config}))
        try:
            self._start(
                "pebble-challtestsrv", "-dns01", f"127.0.0.1:{self._dns}", "-http01", "", "-https01", "",
                "-tlsalpn01", "", "-management", f"127.0.0.1:{self._challtest}", "-defaultIPv6", "",
            )  # fmt: skip
            self._start("pebble", "-config", "pebble.json", "-dnsserver", f"127.0.0.1:{self._dns}")
            for port in (self._challtest, self._port, self._manage):
                self._await(port)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(10)
        self._processes.clear()

    @property
    def issued(self) -> int:
        """How many certificates it has made."""
        return (self.dir / "log").read_text().count("Issued certificate")

    def restart(self) -> None:
        """End it and start it anew: it has forgotten accounts and made another root."""
        self.__exit__(None, None, None)
        self.__enter__()

    def _start(self, *command: str) -> None:
        with (self.dir / "log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    command,
                    cwd=self.dir,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self._env,
                )
            )

    def _await(self, port: int) -> None:
        deadline = time.monotonic() + 15
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                said = (self.dir / "log").read_text()[-2000:]
                assert time.monotonic() < deadline, f"pebble did not start:\n{said}"
                assert all(process.poll() is None for process in self._processes), said
                time.sleep(0.02)
            else:
                return

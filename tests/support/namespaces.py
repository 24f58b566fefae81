"""Network namespaces on one bridge, each with an address of its own. Needs root and iproute2.

The bridge has a namespace too: nothing of the machine's own network is touched. Afterwards nothing is left.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

_IP: Final = shutil.which("ip") or shutil.which("ip", path="/usr/sbin:/sbin")
# Why there are none here; empty where there are.
LACKING: Final = (
    "network namespaces need root" if os.geteuid() != 0 else "" if _IP is not None else "needs iproute2"
)
_CLONE_NEWNET: Final = 0x40000000
T = TypeVar("T")


class Namespace:
    """One of them. ``address`` is what the others see; ``interface`` is where it is."""

    interface: Final = "lab0"

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address

    @property
    def prefix(self) -> tuple[str, ...]:
        """Words before a command that is to run in here; the process is then the command itself."""
        return (_IP or "ip", "netns", "exec", self.name)

    def run(self, work: Callable[[], T]) -> T:
        """What ``work`` returns or raises, called in here by a thread of this process.

        A socket that it makes stays in here.
        """
        results: list[T] = []
        errors: list[BaseException] = []

        def inside() -> None:
            try:
                _enter(self.name)
                results.append(work())
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return results[0]

    def connect(self, host: str, port: int) -> socket.socket:
        """A TCP connection out of here."""
        return self.run(lambda: socket.create_connection((host, port), timeout=20))


class Namespaces:
    """So many, all on one bridge. A context manager.

    Addresses are of one /24 with odd numbers in it, so that finding one somewhere means something.
    """

    def __init__(self, count: int) -> None:
        self._tag = f"rd{secrets.token_hex(3)}"
        # Not one of the numbers is common in memory or in frames, as text or as a byte.
        net = f"10.{secrets.choice((173, 179, 181, 187))}.{secrets.choice((211, 213, 217, 219))}"
        first = secrets.choice((93, 107, 121))
        self._switch = f"{self._tag}s"
        self._each = [Namespace(f"{self._tag}n{n}", f"{net}.{first + 7 * n}") for n in range(count)]

    def __getitem__(self, at: int) -> Namespace:
        return self._each[at]

    def __enter__(self) -> Self:
        try:
            self._add(self._switch)
            _ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
            _ip("-n", self._switch, "link", "set", "bridge", "up")
            for number, each in enumerate(self._each):
                self._join(f"port{number}", each)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._remove()

    def _add(self, name: str) -> None:
        _ip("netns", "add", name)
        _ip("-n", name, "link", "set", "lo", "up")

    def _join(self, port: str, each: Namespace) -> None:
        self._add(each.name)
        peer = ("peer", "name", each.interface, "netns", each.name)
        _ip("-n", self._switch, "link", "add", port, "type", "veth", *peer)
        _ip("-n", self._switch, "link", "set", port, "master", "bridge", "up")
        _ip("-n", each.name, "addr", "add", f"{each.address}/24", "dev", each.interface)
        _ip("-n", each.name, "link", "set", each.interface, "up")

    def _remove(self) -> None:
        for name in (*(each.name for each in self._each), self._switch):
            if _place(name).exists():
                _ip("netns", "del", name)


def _place(name: str) -> Path:
    return Path("/run/netns") / name


def _ip(*words: str) -> None:
    subprocess.run([_IP or "ip", *words], check=True, timeout=20)


def _enter(name: str) -> None:
    """Move this thread into a namespace, for good."""
    libc = ctypes.CDLL(None, use_errno=True)
    with _place(name).open("rb") as file:
        if libc.setns(file.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter the namespace {name}")

"""The demo's relay network: four operators, each a process with a directory, keys and ports of its own.

Before they start, each has its keys, and the first one's directory admits their owners: that is what
``relaydesk directory init`` and ``admit`` do. Everything else they do themselves, over HTTP.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.relay.directory.shelf import Shelf
from relaydesk.engine.relay.identity import Identity
from relaydesk.engine.relay.parts import IDENTITY_FOLDER, KEEPER_FOLDER
from relaydesk.store.files import private_dir
from relaydesk.store.secrets import FileSecrets
from relaydesk.surfaces.demo.client import DemoFailedError
from relaydesk.surfaces.demo.node import Node
from relaydesk.surfaces.demo.tap import Tap, Taps

NAMES: Final = ("keeper", "relay", "target", "client")
# Where the n-th operator is reached, and where it connects from; Linux has all of 127.0.0.0/8 on loopback.
# They differ before their ends, which base64 blurs.
LISTENS: Final = "127.84.{}.9"
CONNECTS: Final = "127.83.{}.9"
ONLY: Final = "127.0.0.1"
READY_S: Final = 40.0
_LOOK_S: Final = 0.1
# The client's: something moves in a console that looks on.
_PROBES: Final = "5s"


@dataclass(frozen=True, slots=True)
class Operator:
    """One of the four. ``source`` is the address that it connects from; ``ref`` is ``operator:node``."""

    name: str
    node: Node
    tap: Tap
    ref: str
    source: str


class Network:
    """A context manager. Afterwards no process is left; ``folder`` is for its maker to remove.

    ``settings`` gives more environment variables, without ``RELAY_``, for an operator's name. Where the
    system has one loopback address, ``distinct`` is false and all operators share it.
    """

    def __init__(self, folder: Path, settings: Callable[[str], dict[str, str]]) -> None:
        self.folder = folder
        self.distinct = _bindable(CONNECTS.format(1)) and _bindable(LISTENS.format(1))
        self._settings = settings
        self._stack = ExitStack()
        self._operators: dict[str, Operator] = {}
        self._clock = SystemClock()
        self.taps = Taps()

    def __enter__(self) -> Self:
        try:
            self._stack.enter_context(self.taps)
            self._make()
            for each in self:
                each.node.begin()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self:
            each.node.end_soon()
        for each in self:
            each.node.end()
        self._stack.close()

    def __iter__(self) -> Iterator[Operator]:
        return iter(self._operators.values())

    def __getitem__(self, name: str) -> Operator:
        return self._operators[name]

    def open(self, name: str) -> Node:
        """An operator's node once it listens, for clients and for other nodes."""
        found = self[name]
        found.node.wait()
        url = urlsplit(found.node.view("network")["listening"][0])
        assert url.hostname is not None
        assert url.port is not None
        found.tap.lead(url.hostname, url.port)
        return found.node

    def settle(self) -> None:
        """Return when each knows all the others."""
        for each in self:
            self.until(partial(self._settled, each), f"operator {each.name} did not find the others")

    def until(self, condition: Callable[[], bool], failed: str) -> None:
        """Look until ``condition`` holds. Raises `DemoFailedError` that says ``failed`` where it is late."""
        deadline = self._clock.mono() + READY_S
        while not condition():
            if self._clock.mono() > deadline:
                raise DemoFailedError(f"{failed} within {READY_S:g} s")
            time.sleep(_LOOK_S)

    def _settled(self, operator: Operator) -> bool:
        others = {each.ref for each in self} - {operator.ref}
        shown = operator.node.view("relays")["relays"]
        return others <= {each["ref"] for each in shown if each["standing"] == "eligible"}

    def _make(self) -> None:
        """Keys, the directory, and nodes that are not started yet."""
        identities = {name: _identity(self._folder(name)) for name in NAMES}
        shelf = Shelf(self._folder(NAMES[0]) / "state" / KEEPER_FOLDER)
        address = shelf.create("demo", SystemRng()).address
        for name, identity in identities.items():
            shelf.admit(identity.owner_addr, "active", name)
        taps = {name: self.taps.add(name, self._address(LISTENS, name)) for name in NAMES}
        for name, identity in identities.items():
            source = self._address(CONNECTS, name)
            lab = {
                "NETWORK": "on",
                "NETWORK_LISTEN": f"{ONLY}:0",
                "PUBLIC_URL": taps[name].url,
                "ALLOW_PRIVATE": "on",
                "OUTBOUND_ADDRESS": source if self.distinct else "",
                "DIRECTORIES": f"{address}@{taps[NAMES[0]].url}",
                "DIRECTORY_INTERVAL": "1s",
            }
            if name == "client":
                lab["PROBE_INTERVAL"] = _PROBES
            node = Node(self._folder(name), {**lab, **self._settings(name)})
            self._operators[name] = Operator(name, node, taps[name], str(identity.ref), source)

    def _folder(self, name: str) -> Path:
        """The client's node is at the top: it is the one that people look at."""
        folder = self.folder if name == "client" else self.folder / name
        folder.mkdir(exist_ok=True)
        return folder

    def _address(self, pattern: str, name: str) -> str:
        return pattern.format(NAMES.index(name) + 1) if self.distinct else ONLY


def _identity(folder: Path) -> Identity:
    """An operator's keys, as its node would make them at its first start."""
    state = folder / "state"
    private_dir(state)
    secrets = FileSecrets(state)
    secrets.prepare()
    return Identity.open(secrets, state / IDENTITY_FOLDER, SystemClock(), SystemRng())


def _bindable(address: str) -> bool:
    """Whether the system lets a socket have that address."""
    with socket.socket() as sock:
        try:
            sock.bind((address, 0))
        except OSError:
            return False
    return True

"""Operators as processes: each a real ``relaydesk serve`` of its own, all of them in one relay network.

The first keeps the directory, the others fetch it there by HTTP. Keys and admissions are made before the
start, by the code that the verbs use; records go the way of any node's.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from relaydesk.core.relay.directory.record import NodeRecord, issue_record
from relaydesk.core.relay.ref import NodeRef
from relaydesk.core.view.network import HopView, NetworkView, RelayView
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.relay.directory.shelf import Shelf
from relaydesk.engine.relay.identity import Identity
from relaydesk.engine.relay.parts import IDENTITY_FOLDER, KEEPER_FOLDER
from relaydesk.store.files import private_dir
from relaydesk.store.secrets import FileSecrets
from tests.support.hub import Hub
from tests.support.pebble import free_ports

# A directory shows what was handed in within this, and nodes are probed so often.
INTERVALS: Final = {"DIRECTORY_INTERVAL": "1s", "PROBE_INTERVAL": "2s"}


@dataclass(frozen=True)
class Plan:
    """One operator before it starts.

    ``settings`` are environment variables without ``RELAY_``, and come last. ``prefix`` are words before the
    command, such as ``ip netns exec NAME``. ``bind`` is where its network listener is (``HOST:PORT``, usually
    a free port of 127.0.0.1), ``url`` its public URL (usually that place, by plain HTTP; "-" for none).
    ``admitted``: the directory takes its record. ``listed``: that is expected, and waited for.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    prefix: Sequence[str] = ()
    bind: str = ""
    url: str = ""
    admitted: bool = True
    listed: bool = True


class Operator(Hub):
    """One operator's node. Before the start it has its keys; of a `Hub` it has all."""

    def __init__(self, folder: Path, plan: Plan, clock: SystemClock) -> None:
        self.plan = plan
        self.bind = plan.bind or f"127.0.0.1:{free_ports(1)[0]}"
        self.public_url = "" if plan.url == "-" else plan.url or f"http://{self.bind}"
        super().__init__(folder, prefix=plan.prefix)
        self.identity = self._identity(clock)

    def settle(self, source: str) -> None:
        """Its settings, with the directory to believe."""
        lab = {
            "NETWORK": "on",
            "NETWORK_LISTEN": self.bind,
            "PUBLIC_URL": self.public_url,
            "ALLOW_PRIVATE": "on",
            "DIRECTORIES": source,
            **INTERVALS,
        }
        self._env |= {f"RELAY_{name}": text for name, text in {**lab, **self.plan.settings}.items()}

    @property
    def ref(self) -> str:
        """``operator:node`` as views show it."""
        return str(self.identity.ref)

    @property
    def node_ref(self) -> NodeRef:
        """The same, in parts."""
        return self.identity.ref

    @property
    def owner(self) -> str:
        """The owner's address, by which it is admitted."""
        return self.identity.owner_addr

    @property
    def pid(self) -> int:
        """The process."""
        assert self.process is not None
        return self.process.pid

    def network(self) -> NetworkView:
        """The section ``network``."""
        section = self.view().network
        assert section.value is not None, section
        return section.value

    def relays(self) -> tuple[RelayView, ...]:
        """The nodes it knows."""
        section = self.view().relays
        assert section.value is not None, section
        return section.value.relays

    def relay(self, other: Operator) -> RelayView:
        """What it says of another."""
        (found,) = [each for each in self.relays() if each.ref == other.ref]
        return found

    def hops(self) -> tuple[HopView, ...]:
        """Its recent hops, newest first."""
        section = self.view().hops
        assert section.value is not None, section
        return section.value.hops

    def probe(self, other: Operator | None = None) -> list[HopView]:
        """Probe every node now, or one; the attempts in their order."""
        ids = {hop["id"] for hop in self.command("probe-relays", ref=other.ref if other else "")["probes"]}
        return [hop for hop in reversed(self.hops()) if hop.id in ids]

    def alerts(self) -> dict[str, str]:
        """The alerts that stand: code and message."""
        section = self.view().alerts
        assert section.value is not None, section
        return {each.code: str(each.message) for each in section.value.alerts}

    def log_text(self) -> str:
        """What it logged so far."""
        return self.log.read_text()

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a verb of the command line against it."""
        command = [*self.plan.prefix, sys.executable, "-m", "relaydesk", *words]
        return subprocess.run(
            command, env=self._env, capture_output=True, text=True, timeout=120, check=False
        )

    def record(self, base_url: str) -> NodeRecord:
        """A record of this node, signed by its own key, as nobody published it."""
        now = SystemClock().wall_ms() // 1000
        return issue_record(
            self.identity.certificate,
            self.identity.signing_addr,
            self.identity.sign,
            version=now,
            issued_at=now,
            base_url=base_url,
            staging=False,
            status="active",
        )

    def _identity(self, clock: SystemClock) -> Identity:
        private_dir(self.state)
        secrets = FileSecrets(self.state)
        secrets.prepare()
        return Identity.open(secrets, self.state / IDENTITY_FOLDER, clock, SystemRng())


class Operators:
    """Operators in one network, one for each `Plan`, or so many plain ones. A context manager.

    Once entered, every listed node knows every other, and where there are three or more it has probed each
    as a target and as a relay. Afterwards nothing is left.
    """

    def __init__(self, *plans: Plan | int) -> None:
        self._clock = SystemClock()
        self.dir = Path(tempfile.mkdtemp(prefix="rd-ops-"))
        wanted = [plan for each in plans for plan in ([Plan()] * each if isinstance(each, int) else [each])]
        self.nodes: list[Operator] = []
        for number, plan in enumerate(wanted, 1):
            folder = self.dir / str(number)
            folder.mkdir()
            self.nodes.append(Operator(folder, plan, self._clock))
        self.shelf = Shelf(self.keeper.state / KEEPER_FOLDER)
        self.address = self.shelf.create("lab", SystemRng()).address
        for number, node in enumerate(self.nodes, 1):
            if node.plan.admitted:
                self.shelf.admit(node.owner, "active", f"op{number}")
            node.settle(self.source)

    def __iter__(self) -> Iterator[Operator]:
        return iter(self.nodes)

    def __getitem__(self, at: int) -> Operator:
        return self.nodes[at]

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def keeper(self) -> Operator:
        """Who keeps the directory."""
        return self.nodes[0]

    @property
    def source(self) -> str:
        """The directory as ``RELAY_DIRECTORIES`` names it: where its keeper listens, past what is in front.

        A keeper that listens everywhere is found by its public URL.
        """
        keeper = self.keeper
        scheme = "https" if keeper.plan.settings.get("NETWORK_TLS") == "on" else "http"
        everywhere = keeper.bind.startswith(("0.0.0.0:", "[::]:"))
        return f"{self.address}@{keeper.public_url if everywhere else f'{scheme}://{keeper.bind}'}"

    @property
    def listed(self) -> list[Operator]:
        """Those that are to be listed."""
        return [node for node in self.nodes if node.plan.listed and node.plan.admitted]

    def list(self, node: Operator, base_url: str) -> None:
        """List a node that nobody looked at, as a careless keeper would; it stays until its next record."""
        self.shelf.put(node.record(base_url))
        self.shelf.sign(self._clock.wall_ms() // 1000)

    def start(self) -> Self:
        """Start all of them and wait until they know each other."""
        # The others would wait ten seconds after they did not find the directory.
        self.keeper.start()
        rest = self.nodes[1:]
        if rest:
            with ThreadPoolExecutor(len(rest)) as starting:
                tuple(starting.map(lambda node: node.start(), rest))
        self.wait_listed()
        if len(self.listed) > 2:
            self.wait_probed()
        return self

    def wait_listed(self, timeout: float = 40.0) -> None:
        """Wait until every listed node lists all the others."""
        refs = {node.ref for node in self.listed}

        def knows(node: Operator) -> Callable[[], bool]:
            return lambda: {r.ref for r in node.relays() if r.standing == "eligible"} >= refs - {node.ref}

        for node in self.listed:
            self.wait(knows(node), f"{node.ref} does not list everybody", timeout)

    def wait_probed(self, timeout: float = 40.0) -> None:
        """Have every listed node probe the others until each is known as a target and as a relay."""
        refs = {node.ref for node in self.listed}

        def probed(node: Operator) -> bool:
            node.command("probe-relays")
            others = [relay for relay in node.relays() if relay.ref in refs - {node.ref}]
            return all(relay.tier == "reachable" and relay.proto_version for relay in others)

        def wait(node: Operator) -> None:
            self.wait(lambda: probed(node), f"{node.ref} has not probed everybody", timeout)

        with ThreadPoolExecutor(len(self.listed)) as probing:
            tuple(probing.map(wait, self.listed))

    def wait(self, condition: Callable[[], Any], why: str, timeout: float = 20.0) -> None:
        """Look until ``condition`` holds."""
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                logs = "\n".join(f"{node.ref}:\n{node.log_text()[-1500:]}" for node in self.nodes)
                raise AssertionError(f"{why} within {timeout:g} s\n{logs}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End every process, and take away what they left."""
        running = [node for node in self.nodes if node.process is not None]
        try:
            with ThreadPoolExecutor(max(1, len(running))) as ending:
                tuple(ending.map(lambda node: node.__exit__(None, None, None), running))
        finally:
            shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

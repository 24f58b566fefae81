"""What is registered here and cannot run answers its 503: nothing leaves, though a target offers the same id.

A relay, a target with a real model and a client with credit are processes in network namespaces of their own.
What is looked at is the client's interface, frame by frame, while nobody probes and no directory is read. The
control is the same key asking the same network by the model's network name.
"""

from __future__ import annotations

import http.client
import json
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.capture import Capture
from tests.support.namespaces import LACKING, Namespace, Namespaces
from tests.support.operators import Operators, Plan

pytestmark = [
    pytest.mark.net,
    pytest.mark.engine,
    pytest.mark.long,
    pytest.mark.skipif(bool(LACKING), reason=LACKING),
    pytest.mark.timeout(240),
]

PORT: Final = 19500
MODEL: Final = "smollm2"
NET: Final = f"net/{MODEL}"
CREDIT: Final = 50_000_000
TAG: Final = secrets.token_hex(6)
SENTENCE: Final = f"The bittern {TAG} keeps its letters under the third sluice of {TAG[::-1]}."
# Every stretch of the sentence of this length: more than that of it nowhere goes unseen.
PART: Final = 12
PARTS: Final = tuple(SENTENCE[at : at + PART].encode() for at in range(0, len(SENTENCE) - PART + 1, PART))
TURNS: Final = [{"role": "user", "content": SENTENCE}]
ROUTES: Final[dict[str, dict[str, Any]]] = {
    "/v1/chat/completions": {"messages": TURNS, "max_tokens": 2},
    "/v1/responses": {"input": SENTENCE, "max_output_tokens": 2},
    "/v1/messages": {"messages": TURNS, "max_tokens": 2},
    "/api/chat": {"messages": TURNS, "options": {"num_predict": 2}},
    "/api/generate": {"prompt": SENTENCE, "options": {"num_predict": 2}},
}
# Nobody asks of his own accord.
QUIET: Final = {"PROBE_INTERVAL": "1h", "HOP_CHECK_INTERVAL": "0s"}
IPV4, IPV6, TCP, UDP = b"\x08\x00", b"\x86\xdd", 6, 17


class World:
    """A relay that keeps the directory, a target that offers the model, a client whose key may buy there."""

    def __init__(
        self, operators: Operators, place: Namespace, config: Path, folder: Path, model: Path
    ) -> None:
        self.relay, self.target, self.client = operators
        self.operators, self.place, self.config = operators, place, config
        self.folder, self.model = folder, model
        rates = {"input_rate": 50_000_000, "output_rate": 200_000_000}
        self.target.add(model, MODEL, offer=True, keep_alive_s=-1, slots=16, ctx=512, **rates)
        self.target.load(MODEL)
        code = self.target.command("issue-credit", amount=CREDIT, note="the client")["code"]
        self.client.command("redeem-credit", code=code)
        limits = {"network": True, "credit_per_day": CREDIT}
        self.key = self.client.command("add-key", name="guest", settings=limits)["key"]
        operators.wait(self._offered, f"{NET} is not offered", 40)
        # The round that each node makes soon after it started is over.
        soon = time.time() * 1000 + 60_000
        for node in operators:
            node.wait_for(lambda view: view.relays.value.next_probe_at_ms > soon)
        self.set(directory_interval="1h")
        since = time.time() * 1000
        self.client.wait_for(lambda view: view.network.value.directories[0].checked_at_ms > since)

    def _offered(self) -> bool:
        self.client.command("probe-relays")
        return self.models().get(NET) == "warm"

    def set(self, **settings: str) -> None:
        """Have the client go on with these settings."""
        lines = [f'{name} = "{value}"\n' for name, value in settings.items()]
        self.config.write_text("".join(lines))
        self.client.command("reload")

    def models(self) -> dict[str, str]:
        """What the key sees: models and their states."""
        with self._connected() as connection:
            connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {self.key}"})
            found = json.loads(connection.getresponse().read())["data"]
        return {each["id"]: each["state"] for each in found}

    def ask(self, route: str, model: str, *, stream: bool, relay: str = "") -> tuple[int, str]:
        """Status and text of the answer to the sentence."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        headers |= {"X-Zs-Relay": relay} if relay else {}
        body = {"model": model, "stream": stream, "temperature": 0, **ROUTES[route]}
        with self._connected() as connection:
            connection.request("POST", route, json.dumps(body).encode(), headers)
            response = connection.getresponse()
            return response.status, response.read().decode()

    @contextmanager
    def _connected(self) -> Iterator[http.client.HTTPConnection]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.client.port, timeout=60)) as connection:
            connection.sock = self.place.connect("127.0.0.1", self.client.port)
            yield connection

    def exchanges(self) -> int:
        """What went through relays so far, by the client's own account; probes do not count."""
        return sum(hop.purpose != "probe" for hop in self.client.hops())

    @contextmanager
    def registered(self, case: str) -> Iterator[None]:
        """The client has a model of the target's id that cannot run."""
        path = self.model
        if case == "spoilt":
            path = Path(shutil.copy(self.model, self.folder / "spoilt.gguf"))
        self.client.add(path, MODEL, ctx=512, slots=1, host_only=case == "host-only")
        if case == "spoilt":
            path.write_bytes(path.read_bytes()[:4096])
        memory = {} if case == "spoilt" else {"host_memory_mb": "1"}
        self.set(directory_interval="1h", **memory)
        try:
            yield
        finally:
            self.client.command("remove-model", name=MODEL)


@pytest.fixture(scope="module")
def world(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("nothing-leaves")
    config = folder / "client.toml"
    config.write_text('directory_interval = "1s"\n')
    # An empty variable is none: the client's file has it, and can be changed while it runs.
    more: list[dict[str, str]] = [{}, {}, {"DIRECTORY_INTERVAL": "", "CONFIG": str(config)}]
    with Namespaces(3) as lab:
        plans = [
            Plan({**QUIET, **more[n]}, prefix=lab[n].prefix, bind=f"{lab[n].address}:{PORT}")
            for n in range(3)
        ]
        with Operators(*plans) as operators:
            yield World(operators, lab[2], config, folder, smollm2)


def talk(capture: Capture) -> list[str]:
    """Everything by which something could be told: connections that begin, and what has data.

    Else there are only the link's own questions, and old connections that rest or end.
    """
    found = [f"{flow}: {data[:60]!r}" for flow, data in capture.streams().items()]
    for frame in capture.frames():
        kind, header = frame[12:14], frame[14:]
        if kind == IPV4 and header[9] != TCP:
            found.append(f"protocol {header[9]} to {socket.inet_ntoa(header[16:20])}")
        elif kind == IPV4 and header[(header[0] & 15) * 4 + 13] & 2:
            found.append(f"a connection of {socket.inet_ntoa(header[12:16])}")
        elif kind == IPV6 and header[6] in (TCP, UDP):
            found.append(f"protocol {header[6]} of IPv6")
    return found


def said(data: bytes) -> set[bytes]:
    """What of the sentence is in there."""
    return {part for part in PARTS if part in data}


@pytest.mark.parametrize("case", ["host-only", "local", "spoilt"])
def test_nothing_leaves(world: World, tmp_path: Path, case: str) -> None:
    code = "model_load_failed" if case == "spoilt" else "model_unavailable"
    before = world.exchanges()
    with world.registered(case), Capture(world.place, tmp_path / "frames") as capture:
        assert world.models()[NET] == "warm", "a target offers the same id"
        for route in ROUTES:
            for stream in (False, True):
                for relay in ("", "auto", "off"):
                    status, text = world.ask(route, MODEL, stream=stream, relay=relay)
                    assert status == 503, (route, stream, relay, text)
                    assert "net/" not in text
                    if route == "/v1/chat/completions":
                        assert json.loads(text)["error"]["code"] == code
                status, text = world.ask(route, MODEL, stream=stream, relay="required")
                assert status == 400 and "X-Zs-Relay" in text, (route, stream, text)
        # Whatever would only follow an answer.
        time.sleep(0.3)
        assert world.models()[NET] == "warm"
    assert talk(capture) == []
    assert not said(capture.raw())
    assert world.exchanges() == before


def test_the_same_key_is_answered_by_the_network(world: World, tmp_path: Path) -> None:
    """The control: it could have gone out, and the capture and the search would have shown it."""
    before = world.exchanges()
    with Capture(world.place, tmp_path / "frames") as capture:
        for route in ROUTES:
            for stream in (False, True):
                status, text = world.ask(route, NET, stream=stream)
                assert status == 200 and '"error"' not in text.replace('"error":null', ""), (route, text)
        host, _, port = world.relay.bind.rpartition(":")
        with closing(world.place.connect(host, int(port))) as plain:
            planted = plain.getsockname()[1]
            head = (
                f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(SENTENCE)}\r\n"
            )
            plain.sendall(f"{head}\r\n{SENTENCE}".encode())
            assert plain.recv(100).startswith(b"HTTP/1.1 4")
    assert talk(capture)
    assert said(capture.raw()) == set(PARTS)
    sent = {flow: data for flow, data in capture.streams().items() if flow.source == world.place.address}
    assert [flow for flow, data in sent.items() if said(data)] == [
        flow for flow in sent if flow.source_port == planted
    ]
    # Each is a reserve and an inference at least, all to the relay; of the sentence nothing is readable.
    asked = b"".join(data for flow, data in sent.items() if (flow.to, flow.to_port) == (host, int(port)))
    assert asked.lower().count(b"x-zs-relay-path: /v1/zs/reserve") >= 2 * len(ROUTES)
    assert asked.lower().count(b"x-zs-relay-path: /v1/chat/completions") >= 2 * len(ROUTES)
    assert not [flow for flow in sent if flow.to == world.target.plan.bind.rpartition(":")[0]]
    assert world.exchanges() > before

"""Where the demo looks, over taps that carry what a test sends; the real search is in `test_demo.py`."""

from __future__ import annotations

import http.client
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from relaydesk.surfaces.demo import network as network_module
from relaydesk.surfaces.demo.leaks import search
from relaydesk.surfaces.demo.network import Network
from relaydesk.surfaces.demo.places import Planted, named_in_log, places

PLANTED = Planted("plantedword")


class _Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    """Operators that are no processes: all taps lead to a server that answers everything."""
    monkeypatch.setattr(network_module.Node, "begin", lambda _self: None)
    with server() as port, Network(tmp_path, lambda _name: {}) as network:
        for each in network:
            each.tap.lead("127.0.0.1", port)
            word = PLANTED.address if each.name == "target" else PLANTED.word
            (each.node.state / "books").write_text(word)
            each.node.log.write_text(word)
        send(network, "keeper", "/v1/zs/relay", PLANTED.word)
        send(network, "target", "/v1/zs/reserve", "", source=PLANTED.address)
        yield network


@contextmanager
def server() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        yield serving.server_address[1]
        serving.shutdown()
        thread.join()


def send(network: Network, to: str, path: str, body: str, source: str = "") -> None:
    url = urlsplit(network[to].tap.url)
    assert url.hostname is not None
    given = (source, 0) if source and network.distinct else None
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=10, source_address=given)
    connection.request("POST", path, body)
    connection.getresponse().read()
    connection.close()


def found_in(network: Network) -> list[str]:
    """Where the secret is found, in memory aside: there are no processes here."""
    here = [each for each in places(network, PLANTED, ("the secret",)) if "memory" not in each.name]
    report = search(here)
    assert report["planted_found"] is True, report
    found: list[str] = report["found_in"]
    return found


def test_nothing_is_found_where_nothing_is(network: Network) -> None:
    assert found_in(network) == []


def test_a_secret_on_the_wire_is_found_whoever_sends_it(network: Network) -> None:
    send(network, "target", "/v1/chat/completions", "it is the secret", source=network["relay"].source)
    assert found_in(network) == ["the wire"]


def test_a_secret_that_somebody_wrote_is_found(network: Network) -> None:
    (network["relay"].node.state / "kept").write_text("the secret")
    network["keeper"].node.log.write_text(f"{PLANTED.word}\nthe secret")
    assert found_in(network) == ["keeper: log", "relay: files"]


def test_who_asks_the_target_itself_is_found(network: Network) -> None:
    if not network.distinct:
        pytest.skip("one loopback address: who connects cannot be told apart")
    client = network["client"].source
    # As a relay it may be asked.
    send(network, "target", "/v1/zs/relay", "", source=client)
    assert found_in(network) == []
    send(network, "target", "/v1/zs/reserve", "", source=client)
    assert found_in(network) == ["target: sealed requests"]
    (network["target"].node.state / "kept").write_text(f"from {client}")
    assert found_in(network) == ["target: sealed requests", "target: files"]


def test_one_address_for_all_is_said(network: Network) -> None:
    network.distinct = False
    report = search(each for each in places(network, PLANTED, ()) if "memory" not in each.name)
    assert report["not_searched"] == ["target: all operators have one address on this system"]


def test_a_name_for_the_log() -> None:
    assert named_in_log("127.83.255.9") == {"PLANTED_127.83.255.9": "1"}

"""A hub that gets its certificate from a real ACME server, seen by a client that trusts only that server."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.acme_server import AcmeServer, Answer
from tests.support.hub import Hub
from tests.support.pebble import Pebble, free_ports

NAME = "hub.lab.test"


@pytest.fixture(scope="module")
def pebble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pebble]:
    with Pebble(tmp_path_factory.mktemp("pebble")) as running:
        yield running


def hub_of(pebble: Pebble, directory: Path, **settings: str) -> Hub:
    return Hub(
        directory,
        tls=True,
        tls_domain=NAME,
        acme_directory=pebble.directory_url,
        acme_ca=str(pebble.ca),
        acme_http_listen=f"127.0.0.1:{pebble.http_port}",
        **settings,
    )


def models_over(hub: Hub, name: str, ca: Path) -> int:
    """The status of a real request, verified as a client does."""
    context = ssl.create_default_context(cafile=str(ca))
    with socket.create_connection(("127.0.0.1", hub.port), timeout=10) as raw:
        link = http.client.HTTPConnection(name, hub.port)
        link.sock = context.wrap_socket(raw, server_hostname=name)
        link.request("GET", "/v1/models", headers=hub.headers())
        status = link.getresponse().status
        link.close()
        return status


def test_a_domain_gets_its_certificate_and_the_house_keeps_the_hubs_own(
    pebble: Pebble, tmp_path: Path
) -> None:
    root = pebble.root(tmp_path / "root.pem")
    with hub_of(pebble, tmp_path) as hub:
        assert hub.url == f"https://{NAME}:{hub.port}", "what people are told to use"
        hub.wait_for(lambda view: not view.alerts.value.alerts)
        assert models_over(hub, NAME, root) == 200
        assert models_over(hub, "localhost", hub.ca) == 200
        assert models_over(hub, "127.0.0.1", hub.ca) == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            models_over(hub, NAME, hub.ca)
        status = hub.status()
        assert status["certificate"].startswith(f"{NAME} from 127.0.0.1 until ")
        assert status["fingerprint"].count(":") == 31
        before = hub.ca.read_bytes()
        assert hub.command("renew-ca")["fingerprint"] != status["fingerprint"]
        assert hub.ca.read_bytes() != before
        assert models_over(hub, NAME, root) == 200
        assert models_over(hub, "localhost", hub.ca) == 200
    issued = pebble.issued
    with hub_of(pebble, tmp_path) as hub:
        assert models_over(hub, NAME, root) == 200, "the start waits for nobody"
        assert hub.status()["alerts"] == []
    assert pebble.issued == issued
    for path in (tmp_path / "state" / "tls" / "acme").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.long
def test_a_server_that_hangs_or_is_not_there_stops_neither_start_nor_end(tmp_path: Path) -> None:
    gate = threading.Event()
    with AcmeServer(tmp_path / "server") as server:
        server.reply["/dir"] = lambda _request, _body: (gate.wait(60), Answer())[1]
        settings = {"tls_domain": NAME, "acme_directory": server.url("dir"), "acme_ca": str(server.ca)}
        hub = Hub(tmp_path, tls=True, acme_http_listen=f"127.0.0.1:{free_ports(1)[0]}", **settings)
        with hub:
            assert models_over(hub, "localhost", hub.ca) == 200
            (alert,) = hub.status()["alerts"]
            assert "until it is there the hub serves one of its own CA" in alert["message"]
            while not server.asked:
                time.sleep(0.01)
            assert models_over(hub, "localhost", hub.ca) == 200
            assert hub.stop() == 0, "a thread still waits for an answer"
        gate.set()
    with hub:
        view = hub.wait_for(lambda view: "cannot be reached (connection refused)" in str(view.alerts))
        assert models_over(hub, "localhost", hub.ca) == 200
        (alert,) = view.alerts.value.alerts
        assert alert.code == "tls_acme"
        assert f"no certificate for {NAME} yet (next try at " in alert.message
        assert hub.status()["certificate"].startswith("none yet")

"""One real ACME server for all tests here, and plans for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from relaydesk.config.listen import Listen
from relaydesk.engine.tls.acme.plan import AcmePlan
from tests.support.acme_server import AcmeServer
from tests.support.pebble import Pebble, free_ports

Plans = Callable[..., AcmePlan]


@pytest.fixture(scope="session")
def pebble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pebble]:
    with Pebble(tmp_path_factory.mktemp("pebble")) as running:
        yield running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AcmeServer]:
    with AcmeServer(tmp_path / "acme-server") as running:
        yield running


@pytest.fixture
def plan_for() -> Plans:
    """A plan for a server (pebble or ours)."""

    def make(server: Pebble | AcmeServer, *names: str, **changes: Any) -> AcmePlan:
        if isinstance(server, Pebble):
            directory, port = server.directory_url, server.http_port
        else:
            directory, port = server.url("dir"), free_ports(1)[0]
        made = AcmePlan(names or ("hub.lab.test",), directory, "", server.ca, Listen("127.0.0.1", port), None)
        return dataclasses.replace(made, **changes)

    return make

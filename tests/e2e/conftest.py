"""Warm hubs for the tests that only ask, so that models are loaded once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients import node_project
from tests.clients.rig import ClientRig
from tests.support.hub import Hub


@pytest.fixture(scope="module")
def hub(smollm2: Path) -> Iterator[Hub]:
    with Hub(metrics=True) as running:
        running.add(smollm2)
        running.load()
        yield running


@pytest.fixture(scope="session")
def rig(smollm2: Path) -> Iterator[ClientRig]:
    """What client libraries are tried against."""
    with ClientRig(smollm2) as running:
        yield running


@pytest.fixture(scope="session")
def node_clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts with their libraries; skips where there are none to be had."""
    try:
        return node_project.prepare(tmp_path_factory.mktemp("node"))
    except node_project.NotInstallable as reason:
        pytest.skip(str(reason))

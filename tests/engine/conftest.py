from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relaydesk.config.load import load
from relaydesk.config.paths import resolve
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.logbook import LogBook
from relaydesk.engine.node import Node

MakeNode = Callable[..., Node]


@pytest.fixture
def make_node(tmp_path: Path) -> Iterator[MakeNode]:
    """Makes nodes over one state directory; settings are given by their environment names without ``RELAY_``.

    Afterwards the log's level is what it was: a node sets it for its process.
    """
    level = logging.getLogger().level

    def make(**settings: str) -> Node:
        environ = {
            "RELAY_STATE_DIR": str(tmp_path / "state"),
            "RELAY_LISTEN": "127.0.0.1:0",
            "RELAY_HOST_MEMORY_MB": "1000",
            "XDG_RUNTIME_DIR": str(tmp_path),
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            **{f"RELAY_{name.upper()}": value for name, value in settings.items()},
        }
        loaded = load(env=environ)
        paths = resolve(loaded.settings, environ)
        return Node(loaded, paths, LogBook(), SystemClock(), SystemRng(), environ)

    yield make
    logging.getLogger().setLevel(level)

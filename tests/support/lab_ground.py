"""What a relay network stands on, with everything real beneath: for tests in one process."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from relaydesk.config.listen import parse_listen
from relaydesk.config.model import Settings
from relaydesk.config.paths import Paths
from relaydesk.engine.alerts import AlertBoard
from relaydesk.engine.bus import Bus
from relaydesk.engine.clock import SystemClock, SystemRng
from relaydesk.engine.looplag import LoopLag
from relaydesk.engine.relay.parts import Ground
from relaydesk.engine.relay.service import NetworkService
from relaydesk.store.db import Database
from relaydesk.store.secrets import FileSecrets


def network_settings(**changes: Any) -> Settings:
    """Settings of a node in a lab on loopback, with ``changes``."""
    lab = {"network": "on", "allow_private": "on", "network_listen": parse_listen("127.0.0.1:0")}
    return dataclasses.replace(Settings(), **{**lab, **changes})


@asynccontextmanager
async def network_service(folder: Path, settings: Settings) -> AsyncIterator[NetworkService]:
    """A service that is open, whatever became of that; its database and state are below ``folder``."""
    paths = Paths(folder, folder, folder / "control.sock", folder / "models")
    database = Database(folder / "relaydesk.db")
    await database.open()
    clock, bus = SystemClock(), Bus()
    ground = Ground(
        paths=paths,
        database=database,
        clock=clock,
        rng=SystemRng(),
        lag=LoopLag(clock),
        bus=bus,
        alerts=AlertBoard(clock, bus),
        settings=lambda: settings,
        draining=lambda: False,
    )
    secrets = FileSecrets(folder)
    secrets.prepare()
    service = NetworkService(ground)
    try:
        await service.look_at_settings()
        await service.open(secrets, None)
        yield service
    finally:
        await service.close()
        await database.close()

"""A watch written down from outside, read back as what was watched."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import msgspec
import pytest

from relaydesk.core.errors import EnvError
from relaydesk.core.view.sections import HealthView
from relaydesk.scripted import read_recording
from relaydesk.surfaces.control.server import ControlServer
from relaydesk.surfaces.recording import Recording
from tests.surfaces.console.stage import Desk


async def test_what_was_watched_can_be_read_back(tmp_path: Path) -> None:
    desk = Desk()
    server = ControlServer(desk.node, tmp_path / "c.sock", desk.clock)
    await server.start()
    file = io.BytesIO()
    recording = Recording(file, tmp_path / "c.sock", desk.clock.mono)
    await asyncio.to_thread(recording.__enter__)
    desk.clock.advance(1.5)
    desk.set(health=HealthView(in_flight=9))
    async with asyncio.timeout(5):
        while b'"in_flight":9' not in file.getvalue():
            await asyncio.sleep(0.02)
    recording.keep("fit-model smollm2", {"fits": True})
    await server.close()
    await asyncio.to_thread(recording.__exit__, None, None, None)
    await desk.stop()
    lines = file.getvalue().splitlines()
    frames = read_recording(lines)
    assert frames[0].update.meta is not None
    assert frames[0].update.meta.value == desk.values["meta"]
    (health,) = [frame for frame in frames[1:] if frame.update.health is not None]
    assert health.at_ms == 1500
    assert health.update.health is not None
    assert health.update.health.value == HealthView(in_flight=9)
    assert msgspec.json.decode(lines[-1])["answers"] == {"fit-model smollm2": {"fits": True}}


def test_a_node_that_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaydesk.surfaces.recording._FIRST_S", 0.05)
    with (
        pytest.raises(EnvError, match="sends nothing to record"),
        Recording(io.BytesIO(), tmp_path / "no.sock", lambda: 0.0),
    ):
        pass

"""A time zone, no colour settings of whoever runs the tests, and a desk."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
import textual.app
import textual.pilot
from textual._context import active_app

from tests.surfaces.console.stage import Desk, drained

SCREENS = Path(__file__).with_name("screens")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("NO_COLOR", "TEXTUAL", "TEXTUAL_THEME", "TEXTUAL_FILTERS", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def _waits_for_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, clicks and pauses wait until everything is handled, not until the process is quiet."""

    async def wait(_least_s: float = 0, _most_s: float = 1) -> None:
        app = active_app.get()
        if app.screen_stack:
            await drained(app)

    monkeypatch.setattr(textual.app, "wait_for_idle", wait)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", wait)


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    yield desk
    await desk.stop()


@pytest.fixture
def same_screen() -> object:
    """Compare a screen's text with the one kept; RELAYDESK_UPDATE_SCREENS=1 keeps the new one."""

    def compare(name: str, text: str) -> None:
        path = SCREENS / f"{name}.txt"
        if os.environ.get("RELAYDESK_UPDATE_SCREENS") == "1":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no screen {name} is kept: run with RELAYDESK_UPDATE_SCREENS=1 and look at it"
        assert text == path.read_text(encoding="utf-8")

    return compare

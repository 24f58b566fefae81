from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from relaydesk.core.pool import lifecycle
from tests.support.scripted_hub import ScriptedHub


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[ScriptedHub]:
    """A hub without a model."""
    async with ScriptedHub(tmp_path) as hub:
        yield hub


@pytest.fixture
async def hub(empty: ScriptedHub) -> ScriptedHub:
    """A hub with one small model, not loaded."""
    await empty.add("tiny", slots=2)
    return empty


@pytest.fixture(autouse=True)
def _short_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed engine is tried again after a tenth of the time: nobody here measures that."""
    monkeypatch.setattr(lifecycle, "BACKOFF_FIRST_S", 0.1)

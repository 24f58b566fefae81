from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from relaydesk.core.pool import lifecycle
from tests.support.scripted_hub import ScriptedHub


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[ScriptedHub]:
    async with ScriptedHub(tmp_path) as hub:
        yield hub


@pytest.fixture(autouse=True)
def _short_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed engine is tried again after a tenth of the time: nobody here measures that."""
    monkeypatch.setattr(lifecycle, "BACKOFF_FIRST_S", 0.1)

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.scripted_hub import ScriptedHub


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[ScriptedHub]:
    async with ScriptedHub(tmp_path) as hub:
        await hub.add("tiny", slots=2)
        yield hub

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.ledger_rig import LedgerRig


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[LedgerRig]:
    made = LedgerRig(tmp_path)
    yield made
    await made.close()

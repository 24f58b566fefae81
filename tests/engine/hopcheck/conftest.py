from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def quick_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Timed answers a fifth as long, and a large body that is not so large."""
    monkeypatch.setattr("relaydesk.engine.hopcheck.sends.BODIES", (1_114_112, 1_200_000))
    for module in ("relaydesk.engine.hopcheck.sends", "relaydesk.surfaces.network.probed"):
        monkeypatch.setattr(f"{module}.GAP_MS", 40)

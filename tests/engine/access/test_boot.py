from __future__ import annotations

from pathlib import Path

import pytest

from relaydesk.engine.access import boot
from relaydesk.engine.access.boot import boot_name


def test_the_same_while_the_system_runs() -> None:
    assert boot_name() == boot_name() != ""


def test_where_the_system_tells_no_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(boot, "_BOOT_ID", tmp_path / "none")
    assert boot_name().isdigit()

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from relaydesk.core.errors import EnvError
from relaydesk.store.usage_log import UsageEntry, UsageLog

ONE, TWO = UsageEntry(1, "k", 20_000, 5, 6), UsageEntry(2, "l", 20_001, 0, 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "usage.log"


def test_what_was_appended_is_there_without_closing(path: Path) -> None:
    log = UsageLog(path)
    assert log.open() == ()
    log.append(ONE)
    log.append(TWO)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert UsageLog(path).open() == (ONE, TWO)
    log.clear()
    assert path.read_bytes() == b""
    log.append(TWO)
    assert UsageLog(path).open() == (TWO,)
    log.close()
    log.close()


def test_every_cut_of_the_last_line_keeps_the_others(path: Path) -> None:
    log = UsageLog(path)
    log.open()
    log.append(ONE)
    whole = path.stat().st_size
    log.append(TWO)
    data = path.read_bytes()
    for size in range(whole, len(data)):
        path.write_bytes(data[:size])
        again = UsageLog(path)
        assert again.open() in ((ONE,), (ONE, TWO))
        again.append(UsageEntry(3, "m", 1, 2, 3))
        assert UsageLog(path).open()[-1].number == 3


def test_a_file_that_cannot_be_used(path: Path) -> None:
    path.mkdir()
    with pytest.raises(EnvError) as caught:
        UsageLog(path).open()
    assert caught.value.fault.code == "storage_failed"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk() -> None:
    log = UsageLog(Path("/dev/full"))
    log._file = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(EnvError) as caught:
        log.append(ONE)
    assert "space" in caught.value.fault.sentence
    log.close()


def test_a_line_cut_short_swallows_no_other(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = UsageLog(path)
    log.open()
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, line: real(file, line[:5]))
    with pytest.raises(EnvError):
        log.append(ONE)
    monkeypatch.undo()
    log.append(TWO)
    assert UsageLog(path).open() == (TWO,)

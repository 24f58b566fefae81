from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relaydesk.core.access.audit import AuditFilter, AuditRecord
from relaydesk.store import audit as module
from relaydesk.store.audit import AuditLog

DAY_MS = 86_400_000
NOON = 20_000 * DAY_MS + DAY_MS // 2  # 2024-10-04
ALL = AuditFilter()


def record(number: int = 0, at_ms: int = NOON, **fields: Any) -> AuditRecord:
    given = {"key": "ann", "key_id": "a" * 16, "route": "/v1", "outcome": "done", "status": 200, **fields}
    return AuditRecord(at_ms=at_ms + number, id=f"r{number}", **given)


class Kept:
    """A log over a directory, opened again and again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.days = 30
        self.told: list[str] = []
        self.now = 0.0
        self.log = AuditLog(directory, lambda: self.days, self.told.append, lambda: self.now)

    def write(self, *records: AuditRecord) -> None:
        self.log = AuditLog(self.directory, lambda: self.days, self.told.append, lambda: self.now)
        self.log.open()
        for each in records:
            self.log.put(each)
        self.log.close()

    def names(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir())


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path / "audit")
    yield made
    made.log.close()


def test_records_are_lines_of_a_private_file_a_day(kept: Kept) -> None:
    kept.write(record(1), record(2), record(3, NOON + DAY_MS))
    assert kept.names() == ["audit-2024-10-04.jsonl", "audit-2024-10-05.jsonl"]
    path = kept.directory / "audit-2024-10-04.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.directory.stat().st_mode) == 0o700
    lines = path.read_bytes().splitlines()
    assert [msgspec.json.decode(line)["id"] for line in lines] == ["r1", "r2"]


def test_a_request_belongs_to_the_day_on_which_it_ended(kept: Kept) -> None:
    kept.write(record(1, NOON, total_ms=DAY_MS))
    assert kept.names() == ["audit-2024-10-05.jsonl"]


def test_the_newest_first_over_files_and_restarts(kept: Kept) -> None:
    kept.write(*(record(n) for n in range(3)))
    kept.write(*(record(n, NOON + DAY_MS) for n in range(3, 6)))
    assert [each.id for each in kept.log.newest(ALL, 4)] == ["r5", "r4", "r3", "r2"]
    assert [each.id for each in kept.log.newest(AuditFilter(since_ms=NOON + 2), 9)] == [
        "r5",
        "r4",
        "r3",
        "r2",
    ]
    assert [each.id for each in kept.log.newest(AuditFilter(until_ms=NOON + 1), 9)] == ["r0"]
    assert kept.log.newest(AuditFilter(key="bob"), 9) == []


def test_long_files_are_read_in_blocks(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 37)
    kept.write(*(record(n, model="m" * n) for n in range(50)))
    assert [each.id for each in kept.log.newest(ALL, 99)] == [f"r{n}" for n in reversed(range(50))]


def test_a_large_file_is_followed_by_another_of_the_day(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 1000)
    kept.write(*(record(n) for n in range(20)))
    kept.write(record(20))
    assert kept.names()[:2] == ["audit-2024-10-04.2.jsonl", "audit-2024-10-04.3.jsonl"]
    assert max(path.stat().st_size for path in kept.directory.iterdir()) <= 1000
    assert [each.id for each in kept.log.newest(ALL, 99)] == [f"r{n}" for n in reversed(range(21))]


def test_old_files_go_and_strangers_files_stay(kept: Kept) -> None:
    kept.write(record(1))
    (kept.directory / "notes.txt").write_text("mine")
    kept.days = 2
    kept.write(record(2, NOON + DAY_MS))
    assert "audit-2024-10-04.jsonl" in kept.names()
    kept.write(record(3, NOON + 2 * DAY_MS))
    assert kept.names() == ["audit-2024-10-05.jsonl", "audit-2024-10-06.jsonl", "notes.txt"]


def test_a_torn_line_hurts_no_other(kept: Kept) -> None:
    kept.write(record(1), record(2))
    path = kept.directory / "audit-2024-10-04.jsonl"
    path.write_bytes(path.read_bytes()[:-7])
    kept.write(record(3))
    assert [each.id for each in kept.log.newest(ALL, 9)] == ["r3", "r1"]


def test_a_disk_that_fails_is_told_once_and_when_it_is_well_again(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.log.open()
    real = module.os.write
    written = threading.Event()

    def full(*_: object) -> int:
        written.set()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "write", full)
    kept.log.put(record(1))
    assert written.wait(5)
    while not kept.told:
        pass
    written.clear()
    kept.log.put(record(2))
    assert written.wait(5)
    monkeypatch.setattr(module.os, "write", real)
    kept.log.put(record(3))
    kept.log.close()
    assert kept.told[-1] == ""
    assert "no space left on device" in kept.told[0]
    assert kept.log.lost == 2
    assert [each.id for each in kept.log.newest(ALL, 9)] == ["r3"]


def test_what_waits_is_bounded(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.log._queue.maxsize = 3
    for number in range(10):
        kept.log.put(record(number))
    assert kept.log.lost == 7
    assert "cannot keep up" in kept.told[0]


def test_no_directory_yet(kept: Kept) -> None:
    assert kept.log.newest(ALL, 9) == []


def test_a_clock_that_jumps_ahead_removes_nothing(kept: Kept) -> None:
    kept.days = 3
    kept.write(record(1), record(2, NOON + 400 * DAY_MS), record(3))
    assert "audit-2024-10-04.jsonl" in kept.names()
    assert [each.id for each in kept.log.newest(ALL, 9)] == ["r2", "r3", "r1"]


def test_names_that_are_no_day_are_strangers(kept: Kept) -> None:
    kept.directory.mkdir(mode=0o700)
    (kept.directory / "audit-2026-99-99.jsonl").write_text("{}")
    kept.write(record(1))
    assert [each.id for each in kept.log.newest(ALL, 9)] == ["r1"]
    assert kept.told == []


def test_a_line_cut_short_swallows_no_other(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.log.open()
    real = module.os.write
    short = threading.Event()

    def cut(file: int, line: bytes) -> int:
        if short.is_set():
            return real(file, line)
        short.set()
        return real(file, line[:10])

    monkeypatch.setattr(module.os, "write", cut)
    kept.log.put(record(1))
    assert short.wait(5)
    while not kept.told:
        pass
    kept.log.put(record(2))
    kept.log.put(record(3))
    kept.log.close()
    assert [each.id for each in kept.log.newest(ALL, 9)] == ["r3", "r2"]


def test_whatever_goes_wrong_the_audit_goes_on(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.log.open()
    real = kept.log._turn_to
    failed = threading.Event()

    def broken(day: str, room: int) -> None:
        if failed.is_set():
            return real(day, room)
        failed.set()
        raise ValueError("what nobody thought of")

    monkeypatch.setattr(kept.log, "_turn_to", broken)
    kept.log.put(record(1))
    assert failed.wait(5)
    while not kept.told:
        pass
    kept.log.put(record(2))
    kept.log.close()
    assert "what nobody thought of" in kept.told[0]
    assert [each.id for each in kept.log.newest(ALL, 9)] == ["r2"]

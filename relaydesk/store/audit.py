"""The audit's files: one a day (UTC), JSON lines, only ever appended to, removed when they are old enough.

A thread writes, so that a slow disk never holds up a request. A line is with the system at most a moment
after it was handed over; `close` waits for the last.
"""

from __future__ import annotations

import errno
import os
import queue
import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from relaydesk.core.access.audit import AuditFilter, AuditRecord
from relaydesk.store.files import file_error, private_dir

WAITING: Final = 10_000
LARGEST: Final = 64 * 1024 * 1024
_NAME: Final = re.compile(r"audit-(\d{4}-\d{2}-\d{2})(?:\.(\d{1,4}))?\.jsonl")
_BLOCK: Final = 64 * 1024
# What one search reads at most: a filter that matches nothing must not read years.
_READ_LIMIT: Final = 256 * 1024 * 1024
_DAY_MS: Final = 86_400_000

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(AuditRecord)


class AuditLog:
    """The files in ``directory``. ``failed`` is told what goes wrong, "" after; the writer's thread calls it.

    ``days`` says how many days of files are kept, the current one included; ``mono`` is seconds that only go
    forward.
    """

    def __init__(
        self,
        directory: Path,
        days: Callable[[], int],
        failed: Callable[[str], None],
        mono: Callable[[], float],
    ) -> None:
        self._mono = mono
        self.directory = directory
        self._days = days
        self._failed = failed
        self._queue: queue.Queue[AuditRecord | None] = queue.Queue(WAITING)
        self._thread: threading.Thread | None = None
        self._file = -1
        self._name = ""
        self._size = 0
        self._broken = False
        self._torn = False
        self._opened = mono()
        self._first_day: datetime | None = None
        self.lost = 0

    def open(self) -> None:
        """Make the directory (0700) and take records. Raises `EnvError` ``storage_failed``."""
        private_dir(self.directory)
        self._thread = threading.Thread(target=self._serve, name="audit", daemon=True)
        self._thread.start()

    def put(self, record: AuditRecord) -> None:
        """Hand over a record. Where the disk is too far behind it is dropped and counted in `lost`."""
        try:
            self._queue.put_nowait(record)
        except queue.Full:
            self.lost += 1
            self._failed("the audit cannot keep up with the requests, and records are missing")

    def close(self) -> None:
        """Write what was handed over. Blocks. May be called twice."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join()

    def newest(self, wanted: AuditFilter, limit: int) -> list[AuditRecord]:
        """The newest matching records, newest first. Blocks. Lines that cannot be read are passed over."""
        found: list[AuditRecord] = []
        left = _READ_LIMIT
        for path in sorted(self._files(), key=_order, reverse=True):
            if _day_end(path) <= wanted.since_ms:
                break
            for line in _backwards(path):
                left -= len(line) + 1
                try:
                    record = _DECODER.decode(line)
                except msgspec.MsgspecError:
                    continue
                if wanted.matches(record):
                    found.append(record)
                if len(found) >= limit or left <= 0:
                    return found
        return found

    def _serve(self) -> None:
        while (record := self._queue.get()) is not None:
            batch = [record]
            try:
                while (more := self._queue.get_nowait()) is not None:
                    batch.append(more)
                self._queue.put(None)
            except queue.Empty:
                pass
            self._write(batch)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, batch: list[AuditRecord]) -> None:
        try:
            for record in batch:
                line = _ENCODER.encode(record) + b"\n"
                self._turn_to(_day_name(record.at_ms + record.total_ms), len(line))
                self._append(line)
        except OSError as exc:
            self._lose(len(batch), str(file_error(exc, "write the audit in", self.directory)))
            return
        except Exception as exc:
            # Whatever it is: without its thread the audit would be silent from here on.
            self._lose(len(batch), f"the audit cannot be written ({type(exc).__name__}: {exc})")
            return
        if self._broken:
            self._broken = False
            self._failed("")

    def _append(self, line: bytes) -> None:
        """Raises `OSError` also where only a part was written; what comes next then begins a line."""
        whole = b"\n" + line if self._torn else line
        self._torn = True
        written = os.write(self._file, whole)
        self._size += written
        if written != len(whole):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._torn = False

    def _lose(self, count: int, sentence: str) -> None:
        self.lost += count
        if not self._broken:
            self._broken = True
            self._failed(sentence)

    def _turn_to(self, day: str, room: int) -> None:
        """Have the day's file open, a further one of it where it has grown large."""
        if self._file >= 0 and self._name.startswith(f"audit-{day}") and self._size + room <= LARGEST:
            return
        for number in range(1, 10_000):
            name = f"audit-{day}.jsonl" if number == 1 else f"audit-{day}.{number}.jsonl"
            path = self.directory / name
            size = path.stat().st_size if path.exists() else 0
            if size + room <= LARGEST:
                break
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._name, self._size = name, size
        self._end_line(path)
        self._remove_old(day)

    def _end_line(self, path: Path) -> None:
        """A line cut short by a crash does not grow into the next one."""
        if self._size:
            with path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    os.write(self._file, b"\n")

    def _remove_old(self, day: str) -> None:
        today = self._believed(_date(day))
        for path in self._files():
            if (today - _date(_order(path)[0])).days >= self._days():
                path.unlink(missing_ok=True)

    def _believed(self, today: datetime) -> datetime:
        """The day, but no later than time has passed since the first one: a clock may jump ahead, and what it
        would have removed then is gone for good.
        """
        if self._first_day is None:
            self._first_day = today
        passed = timedelta(seconds=self._mono() - self._opened, days=1)
        return min(today, self._first_day + passed)

    def _files(self) -> list[Path]:
        try:
            return [path for path in self.directory.iterdir() if _is_ours(path.name)]
        except FileNotFoundError:
            return []


def _is_ours(name: str) -> bool:
    found = _NAME.fullmatch(name)
    if found is None:
        return False
    try:
        _date(found[1])
    except ValueError:
        return False
    return True


def _order(path: Path) -> tuple[str, int]:
    found = _NAME.fullmatch(path.name)
    return (found[1], int(found[2] or 1)) if found else ("", 0)


def _date(day: str) -> datetime:
    return datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)


def _day_name(wall_ms: int) -> str:
    return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%Y-%m-%d")


def _day_end(path: Path) -> int:
    """When the file's day is over. Its records ended by then, so none of them began later."""
    return int(_date(_order(path)[0]).timestamp() * 1000) + _DAY_MS


def _backwards(path: Path) -> Iterator[bytes]:
    """A file's whole lines, last first, in bounded memory."""
    with path.open("rb") as file:
        at = file.seek(0, os.SEEK_END)
        rest = b""
        while at:
            size = min(_BLOCK, at)
            at -= size
            file.seek(at)
            lines = (file.read(size) + rest).split(b"\n")
            rest = lines.pop(0)
            yield from (line for line in reversed(lines) if line)
        if rest:
            yield rest

"""What a worker's process takes, measured."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import psutil

_FIELD: Final = re.compile(r"^(Rss|Pss|RssFile): +(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Bytes. ``pss`` divides shared pages among those who share them (two workers of one file); 0 where
    the system does not tell. ``file_backed`` is what is resident of mapped files, mostly the weights."""

    rss: int
    pss: int = 0
    file_backed: int = 0


def process_memory(pid: int) -> ProcessMemory:
    """Measure ``pid``; zeros where it is gone. Walks its page tables: call it in a thread."""
    rollup = _fields(f"/proc/{pid}/smaps_rollup")
    status = _fields(f"/proc/{pid}/status")
    rss = rollup.get("Rss", 0)
    if not rss:
        try:
            rss = int(psutil.Process(pid).memory_info().rss)
        except psutil.Error:
            return ProcessMemory(0)
    return ProcessMemory(rss, rollup.get("Pss", 0), status.get("RssFile", 0))


def file_backed(pid: int) -> int:
    """Bytes of mapped files resident in ``pid``: grows while a model loads. Cheap; 0 where not known."""
    return _fields(f"/proc/{pid}/status").get("RssFile", 0)


def _fields(path: str) -> dict[str, int]:
    try:
        with open(path, encoding="ascii") as file:
            return {name: int(kib) * 1024 for name, kib in _FIELD.findall(file.read().replace("\t", " "))}
    except (OSError, ValueError):
        return {}

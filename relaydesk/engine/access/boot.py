"""Which start of the system this is: after another one, what was not synced to the disk may be lost."""

from __future__ import annotations

from pathlib import Path

import psutil

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_name() -> str:
    """The same text as long as the system runs. Blocks for a moment.

    Linux tells an id. Elsewhere it is the time of the start, which a corrected clock may move: that counts as
    another start, which is the safe side.
    """
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return str(round(psutil.boot_time()))

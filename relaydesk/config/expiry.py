"""When a key stops opening anything, as people write it: ``30d``, ``12h``, ``2027-01-31``, ``never``."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import Final

from relaydesk.config.kinds import parse_duration

ALLOWED: Final = "30d, 12h, 2027-01-31 or never"
_DAYS: Final = re.compile(r"(\d{1,6})d")
_DAY_MS: Final = 86_400_000


def parse_expiry(text: str, now_ms: int) -> int:
    """Wall-clock milliseconds, 0 for never; a day ends a key at its beginning (UTC).

    Raises `ValueError` for what is none of `ALLOWED`.
    """
    text = text.strip().lower()
    if text == "never":
        return 0
    if found := _DAYS.fullmatch(text):
        return now_ms + int(found[1]) * _DAY_MS
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return now_ms + round(parse_duration(text) * 1000)
    return int(datetime.combine(day, time(), UTC).timestamp()) * 1000

"""Points in time as clients of Ollama read them: RFC 3339 with an offset."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The last day that a client in any time zone can still hold.
_LAST_MS: Final = 253_402_200_000_000


def instant(at_ms: int) -> str:
    """Milliseconds since 1970 as text; what lies beyond the calendar becomes its nearest end."""
    held = _EPOCH + timedelta(milliseconds=min(max(at_ms, 0), _LAST_MS))
    return held.isoformat(timespec="milliseconds")

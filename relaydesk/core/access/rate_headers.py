"""How a key stands, as headers that OpenAI's clients know: ``x-ratelimit-*``."""

from __future__ import annotations

from math import ceil

from relaydesk.core.access.limits import KeyLimits
from relaydesk.core.access.quota import Standing


def rate_headers(limits: KeyLimits, standing: Standing) -> dict[str, str]:
    """Headers for the limits that a key has; none where it has none.

    ``requests`` are of a minute, ``tokens`` of a day; what is set aside for running requests counts as used.
    """
    headers: dict[str, str] = {}
    if standing.minute_left is not None:
        headers["x-ratelimit-limit-requests"] = str(limits.requests_per_minute)
        headers["x-ratelimit-remaining-requests"] = str(standing.minute_left)
        headers["x-ratelimit-reset-requests"] = duration(standing.minute_reset_s)
    if standing.tokens_left is not None:
        headers["x-ratelimit-limit-tokens"] = str(limits.tokens_per_day)
        headers["x-ratelimit-remaining-tokens"] = str(standing.tokens_left)
        headers["x-ratelimit-reset-tokens"] = duration(standing.day_reset_s)
    return headers


def duration(seconds: float) -> str:
    """Whole seconds, rounded up, as clients read durations: ``0s``, ``59s``, ``6m0s``, ``1h2m3s``."""
    minutes, rest = divmod(ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"

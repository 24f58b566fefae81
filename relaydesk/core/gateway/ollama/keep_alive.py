"""``keep_alive``: how long a model stays loaded after a request, in every spelling that clients use.

A number is seconds. A text is a duration such as ``5m`` or ``1h30m``, or a number in quotes, which Ollama
itself refuses and people send all the same. Below zero means for ever, zero means unload.
"""

from __future__ import annotations

import math
import re
from typing import Final

from relaydesk.core.gateway.decode import invalid
from relaydesk.core.text import safe_text

FOREVER: Final = -1
# Longer is no different from for ever, and dates beyond it break clients' calendars.
MAX_S: Final = 100 * 365 * 86_400

_NUMBER: Final = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_PLAIN: Final = re.compile(rf"[+-]?{_NUMBER}")
_DURATION: Final = re.compile(rf"[+-]?(?:{_NUMBER}(?:ns|us|µs|μs|ms|s|m|h))+")
_PART: Final = re.compile(rf"({_NUMBER})([a-zµμ]+)")
_UNITS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}


def keep_alive_s(given: float | str | None) -> int | None:
    """Whole seconds, `FOREVER`, or None where nothing was given; 0 only for nothing at all.

    Raises `PeerError` ``invalid_request`` naming ``keep_alive``.
    """
    if given is None:
        return None
    seconds = _seconds(given.strip()) if isinstance(given, str) else given
    if seconds < 0:
        return FOREVER
    # Part of a second is not nothing.
    return math.ceil(min(seconds, MAX_S))


def _seconds(text: str) -> float:
    if len(text) <= 64:
        if _PLAIN.fullmatch(text):
            return float(text)
        if _DURATION.fullmatch(text):
            sum_s = math.fsum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
            return -sum_s if text.startswith("-") else sum_s
    shown = safe_text(text, 40)
    raise invalid("keep_alive", f"keep_alive {shown!r} is no duration: give seconds, or a text such as 5m")

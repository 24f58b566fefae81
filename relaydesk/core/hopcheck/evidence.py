"""An exchange as lines for people, with what could be a secret cut."""

from __future__ import annotations

import re
from typing import Final

from relaydesk.core.hopcheck.model import Exchange
from relaydesk.core.text import safe_text

MOST_LINES: Final = 40
MOST_LINE: Final = 240
MOST_QUOTED: Final = 160
CUT: Final = "(cut)"
_SECRET: Final = re.compile(
    r"cookie|authori[sz]ation|authenticat|token|secret|session|password|api-?key|x-zs-relay-probe|csrf|signature",
    re.IGNORECASE,
)


def lines(exchange: Exchange) -> tuple[str, ...]:
    """Request line, its headers, status line, its headers, and the beginning of a body that is text."""
    told = [f"{exchange.method} {exchange.url} {exchange.protocol}"]
    told += [header(*each) for each in exchange.request]
    if exchange.sent:
        told.append(f"({exchange.sent} bytes)")
    if not exchange.status:
        told.append(f"no answer: {exchange.problem}")
        return tuple(_safe(line) for line in told)
    told.append(f"{exchange.protocol} {exchange.status}")
    told += [header(*each) for each in exchange.headers]
    quoted = exchange.body[: 2 * MOST_QUOTED].decode("utf-8", "replace").strip()
    if quoted and not exchange.value("Content-Encoding"):
        told.append(f"{safe_text(quoted, MOST_QUOTED)}")
    if len(told) > MOST_LINES:
        told[MOST_LINES - 1 :] = [f"({len(told) - MOST_LINES + 1} more lines)"]
    return tuple(_safe(line) for line in told)


def header(name: str, value: str) -> str:
    """One header; the value of one that may carry a secret is left out."""
    return f"{name}: {CUT if _SECRET.search(name) else value}"


def _safe(line: str) -> str:
    return safe_text(line, MOST_LINE)

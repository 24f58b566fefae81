"""How far something is: a bar that fills."""

from __future__ import annotations

from typing import Final

from relaydesk.surfaces.console.widgets.spans import Line, Span, merge

# Eighths of a cell, so that a slow download is seen to move.
EIGHTHS: Final = " ▏▎▍▌▋▊▉"
FULL: Final = "█"
TRACK: Final = "░"


def gauge(
    share: float | None, width: int, *, tone: str = "accent", ascii: bool = False, percent: bool = True
) -> Line:
    """A bar of exactly ``width`` cells, the per cent at its end where there is room for both.

    ``share`` is 0 to 1 and held to that; None is unknown, which is a bar with nothing in it and no number.
    The per cent is rounded down: 100 means done.
    """
    if width <= 0:
        return ()
    known = 0.0 if share is None or share != share else min(1.0, max(0.0, share))
    label = f"{int(known * 100 + 1e-9):>4}%" if percent and share is not None and width >= 10 else ""
    room = width - len(label)
    if ascii:
        full = int(known * room)
        return merge((Span("#" * full, tone), Span("-" * (room - full), "faint"), Span(label)))
    eighths = int(known * room * 8)
    full, rest = divmod(eighths, 8)
    body = FULL * full + (EIGHTHS[rest] if rest else "")
    return merge((Span(body, tone), Span(TRACK * (room - len(body)), "faint"), Span(label)))

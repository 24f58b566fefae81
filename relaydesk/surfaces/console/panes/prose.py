"""Sentences and facts as lines of a width: what details are written with."""

from __future__ import annotations

from typing import Final

from relaydesk.core.view.sections import FaultView
from relaydesk.surfaces.console.pieces import MARKS
from relaydesk.surfaces.console.widgets.cells import clean, fit, wrap
from relaydesk.surfaces.console.widgets.cells import width as cells
from relaydesk.surfaces.console.widgets.spans import Line, Span

# Cells of a fact's name, the gap after it included.
LABEL: Final = 12
NOTHING: Final[Line] = ()


def paragraph(text: str, width: int, tone: str = "", indent: int = 0) -> tuple[Line, ...]:
    """A text broken into lines, each ``indent`` cells in."""
    blank = (Span(" " * indent),) if indent else ()
    return tuple((*blank, Span(line, tone)) for line in wrap(text, width - indent))


def fact(label: str, text: str, width: int, tone: str = "", room: int = LABEL) -> tuple[Line, ...]:
    """A name and what it is, wrapped beside the name; nothing where there is nothing to say."""
    found = wrap(text, max(1, width - room))
    return tuple(
        (Span(fit(label if at == 0 else "", room), "dim"), Span(line, tone)) for at, line in enumerate(found)
    )


def path_fact(label: str, path: str, width: int, tone: str = "", room: int = LABEL) -> tuple[Line, ...]:
    """A fact that is a path or an address: long ones are broken behind a slash."""
    lines: list[str] = []
    for piece in clean(path).replace("/", "/\0").split("\0"):
        if lines and cells(lines[-1]) + cells(piece) <= width - room:
            lines[-1] += piece
        else:
            lines += wrap(piece, max(1, width - room))
    return tuple(
        (Span(fit(label if at == 0 else "", room), "dim"), Span(line, tone)) for at, line in enumerate(lines)
    )


def marked(tone: str, text: str, width: int, text_tone: str | None = None) -> tuple[Line, ...]:
    """A sentence behind its tone's symbol, later lines below the sentence and not the symbol."""
    shown = tone if text_tone is None else text_tone
    return tuple(
        (Span(f"{MARKS[tone]} " if at == 0 else "  ", tone), Span(line, shown))
        for at, line in enumerate(wrap(text, max(1, width - 2)))
    )


def fault_lines(fault: FaultView, width: int) -> tuple[Line, ...]:
    """What went wrong, and the next step."""
    said = marked("error", sentence(fault.message), width)
    return (*said, *paragraph(f"Next: {sentence(fault.hint)}", width, indent=2)) if fault.hint else said


def sentence(text: str) -> str:
    """Text with a full stop, unless it ends in a mark of its own."""
    return text if not text or text[-1] in ".!?…" else f"{text}."

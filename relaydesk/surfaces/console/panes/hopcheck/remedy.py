"""A remedy's text as lines and as something to copy: sentences, and configuration in fenced blocks.

The fence's words are the product's language and whether the block is to be removed or added.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from relaydesk.surfaces.console.panes.prose import NOTHING, paragraph
from relaydesk.surfaces.console.widgets.cells import head
from relaydesk.surfaces.console.widgets.cells import width as cells
from relaydesk.surfaces.console.widgets.spans import Line, Span

_FENCE: Final = "```"
_GUTTERS: Final[dict[str, tuple[str, str]]] = {
    "remove": ("- ", "error"),
    "add": ("+ ", "ok"),
    "text": ("  ", ""),
}

Does = Literal["say", "remove", "add", "text"]


class Part(NamedTuple):
    """A stretch of sentences, or one block of configuration and what to do with it."""

    does: Does
    lines: tuple[str, ...]


def parts(text: str) -> tuple[Part, ...]:
    """The stretches of a remedy. A fence that is never closed ends with the text."""
    made: list[Part] = []
    does: Does = "say"
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith(_FENCE):
            lines.append(line)
            continue
        _close(made, does, lines)
        words = line[len(_FENCE) :].split()
        inside = does == "say"
        does = "say" if not inside else "remove" if "remove" in words else "add" if "add" in words else "text"
        lines = []
    _close(made, does, lines)
    return tuple(made)


def remedy_lines(text: str, width: int) -> tuple[Line, ...]:
    """A remedy for a width: what goes out behind a minus, what comes in behind a plus."""
    made: list[Line] = []
    for part in parts(text):
        made += [NOTHING] if made else []
        if part.does == "say":
            for line in part.lines:
                made += paragraph(line.replace("`", ""), width) or (NOTHING,)
        else:
            gutter, tone = _GUTTERS[part.does]
            for line in part.lines:
                made += code_line(line, width, gutter, tone)
    return tuple(made)


def code_line(text: str, width: int, gutter: str = "  ", tone: str = "") -> tuple[Line, ...]:
    """A line as it is, its blanks included; one that is too long goes on below, further in."""
    text = text.expandtabs(4).rstrip()
    indent = len(text) - len(text.lstrip(" "))
    made: list[Line] = []
    room = max(8, width - 2 - cells(gutter))
    lead = gutter
    while True:
        piece = _piece(text, room)
        made.append((Span("  "), Span(lead, tone), Span(piece, tone or "strong")))
        text = text[len(piece) :].lstrip(" ")
        if not text:
            return tuple(made)
        lead = " " * cells(gutter)
        text = " " * min(indent + 4, room // 2) + text


def copied(text: str) -> str:
    """A remedy for the clipboard: all of it, without the fences."""
    made = ["\n".join(part.lines) for part in parts(text)]
    return "\n\n".join(made).strip() + "\n"


def _piece(text: str, room: int) -> str:
    piece = head(text, room)
    if len(piece) == len(text):
        return text
    blank = piece.rfind(" ", len(piece) // 3)
    return piece[:blank] if blank > 0 and piece[:blank].strip() else piece or text[:1]


def _close(made: list[Part], does: Does, lines: list[str]) -> None:
    while lines and not lines[0].strip() and does == "say":
        del lines[0]
    while lines and not lines[-1].strip():
        del lines[-1]
    if lines:
        made.append(Part(does, tuple(lines)))

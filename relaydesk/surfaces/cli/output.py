"""Text for people and JSON for programs.

Colour is decoration: every state also has a word. It is off where ``NO_COLOR`` is set, for ``TERM=dumb``
and wherever the output is no terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Final, Literal, TextIO

import click

from relaydesk.core.codec import encode
from relaydesk.core.view.amounts import duration
from relaydesk.core.view.amounts import mib as mib
from relaydesk.core.view.amounts import millis as millis
from relaydesk.core.view.amounts import of_size as of_size
from relaydesk.core.view.amounts import size as size

# A duration beside a moment: "3 h 12 min ago", "kept 15 min".
ago = duration

Tone = Literal["good", "warn", "bad", "dim", "bold", "plain"]

_STYLE: Final[dict[str, dict[str, Any]]] = {
    "good": {"fg": "green"},
    "warn": {"fg": "yellow"},
    "bad": {"fg": "red"},
    "dim": {"dim": True},
    "bold": {"bold": True},
    "plain": {},
}
_ENDLESS: Final = 10_000
_LEAST: Final = 8
_SYMBOL: Final = {"good": "●", "warn": "▲", "bad": "✗", "dim": "○"}


def coloured(stream: TextIO) -> bool:
    """Whether escapes may go to ``stream``."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def paint(text: str, tone: Tone, stream: TextIO | None = None) -> str:
    """``text`` in a tone, where the stream (stdout if not given) shows colours."""
    if not _STYLE[tone] or not coloured(sys.stdout if stream is None else stream):
        return text
    return click.style(text, **_STYLE[tone])


def mark(tone: Tone) -> str:
    """A symbol for a state; the word for it stands beside it."""
    return paint(_SYMBOL.get(tone, " "), tone)


def print_json(value: Any) -> None:
    """One object on one line: what ``--json`` promises."""
    sys.stdout.write((value if isinstance(value, bytes) else encode(value)).decode() + "\n")


def say(text: str = "") -> None:
    """A line of stdout."""
    click.echo(text, color=True)


def tell(text: str) -> None:
    """A sentence of stdout, broken between words where it is longer than a line."""
    for line in wrap(text):
        say(line)


def note(text: str) -> None:
    """A sentence beside the result: stderr."""
    for line in wrap(text) if sys.stderr.isatty() else [text]:
        click.echo(line, err=True, color=True)


def columns() -> int:
    """Cells of a line: the terminal's, or so many that nothing is shortened where there is none.

    Programs that read our output want whole names; ``COLUMNS`` says otherwise.
    """
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        import shutil

        return max(20, shutil.get_terminal_size().columns)
    return _ENDLESS


def shorten(text: str, room: int, *, left: bool = False) -> str:
    """``text`` in ``room`` cells at most, with ``…`` for what was left out (``left``: of a path)."""
    if width(text) <= room:
        return text
    kept = text[::-1] if left else text
    while kept and width(kept) > room - 1:
        kept = kept[:-1]
    return "…" + kept[::-1] if left else kept + "…"


def home(path: str) -> str:
    """A path with ``~`` for the user's own directory."""
    own = os.path.expanduser("~")
    return "~" + path[len(own) :] if len(own) > 1 and (path == own or path.startswith(own + os.sep)) else path


def wrap(text: str, indent: str = "", first: str | None = None) -> list[str]:
    """Words on lines that fit the terminal; ``first`` is the first line's indent. Commands stay whole."""
    room = columns()
    lines: list[str] = []
    line = indent if first is None else first
    begun = False
    for word in _words(text):
        if begun and width(line) + 1 + width(word) > room:
            lines.append(line)
            line, begun = indent, False
        line += (" " if begun else "") + word
        begun = True
    return [*lines, line]


def _words(text: str) -> list[str]:
    """Words, where what stands between backticks is one."""
    words: list[str] = []
    inside = False
    for word in text.split():
        if inside:
            words[-1] += " " + word
        else:
            words.append(word)
        inside ^= word.count("`") % 2 == 1
    return words


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    indent: str = "  ",
    *,
    shrink: Sequence[int] = (),
    left: Sequence[int] = (),
) -> list[str]:
    """Aligned columns; cells may be painted, their width counts without the paint.

    Where they do not fit the terminal, the columns of ``shrink`` give way, the first of them first, down to
    eight cells; those of ``left`` lose their beginning.
    """
    widths = [max(width(row[column]) for row in (head, *rows)) for column in range(len(head))]
    excess = width(indent) + sum(widths) + 2 * (len(head) - 1) - columns()
    for column in shrink:
        taken = min(max(0, excess), max(0, widths[column] - _LEAST))
        widths[column] -= taken
        excess -= taken
    rows = [
        [shorten(cell, widths[at], left=at in left) if at in shrink else cell for at, cell in enumerate(row)]
        for row in rows
    ]
    lines = [
        indent + paint("  ".join(_pad(cell, widths, at) for at, cell in enumerate(head)).rstrip(), "dim")
    ]
    lines += [
        indent + "  ".join(_pad(cell, widths, at) for at, cell in enumerate(row)).rstrip() for row in rows
    ]
    return lines


def width(text: str) -> int:
    """Terminal columns of a line: East Asian wide characters take two, combining ones none."""
    import unicodedata

    plain = click.unstyle(text)
    if plain.isascii():
        return len(plain)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in plain
    )


def _pad(cell: str, widths: Sequence[int], at: int) -> str:
    return cell + " " * (widths[at] - width(cell))


def stacked(parts: Sequence[tuple[str, int]], length: int) -> str:
    """A bar of ``length`` cells: each part, a fill and an amount, by its share. Empty where all are 0."""
    if not any(amount for _, amount in parts):
        return ""
    cells = shares([amount for _, amount in parts], length)
    return "".join(fill * count for (fill, _), count in zip(parts, cells, strict=True))


def shares(parts: Sequence[int], length: int) -> list[int]:
    """``length`` cells divided among the parts by size, each part that is there with at least one.

    The largest part gives what rounding takes too much; the sum is ``length`` unless there are more parts.
    """
    total = sum(parts) or 1
    cells = [max(1, round(part * length / total)) if part else 0 for part in parts]
    while sum(cells) > max(length, sum(1 for part in parts if part)):
        cells[cells.index(max(cells))] -= 1
    if cells and sum(cells) < length:
        cells[cells.index(max(cells))] += length - sum(cells)
    return cells

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

Tone = Literal["good", "warn", "bad", "dim", "bold", "plain"]

_STYLE: Final[dict[str, dict[str, Any]]] = {
    "good": {"fg": "green"},
    "warn": {"fg": "yellow"},
    "bad": {"fg": "red"},
    "dim": {"dim": True},
    "bold": {"bold": True},
    "plain": {},
}
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


def note(text: str) -> None:
    """A line beside the result: stderr."""
    click.echo(text, err=True, color=True)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    """Aligned columns; cells may be painted, their width counts without the paint."""
    widths = [max(width(row[column]) for row in (head, *rows)) for column in range(len(head))]
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


def mib(count: int) -> str:
    """MiB as people read them."""
    return f"{count / 1024:.1f} GiB" if count >= 10 * 1024 else f"{count} MiB"


def size(count: float) -> str:
    """Bytes as people read them, in binary units."""
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def ago(seconds: float) -> str:
    """A duration with two units at most."""
    left = max(0, int(seconds))
    parts = []
    for unit, step in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, step)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def millis(value: int | None) -> str:
    """A duration in milliseconds; a dash where it is not known (yet)."""
    if value is None:
        return "–"
    return f"{value} ms" if value < 10_000 else f"{value / 1000:.1f} s"

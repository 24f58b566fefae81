"""The log as rows and as a detail. Lines were made safe where the node took them down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from relaydesk.core.view.sections import LogLine, LogView
from relaydesk.surfaces.console.pieces import MARKS, Piece
from relaydesk.surfaces.console.states import clock_time
from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.rows import Cell, Row

COLUMNS: Final = (
    Column("time", "TIME", width=8, priority=1),
    Column("level", "LEVEL", width=9, priority=2),
    Column("source", "SOURCE", width=18, min_width=12, priority=3),
    Column("text", "TEXT", fill=1, min_width=24),
)
# What each choice of the level key lets through, least to most.
LEVELS: Final = ("info", "warning", "error")
_RANK: Final = {"debug": 0, "info": 0, "warning": 1, "error": 2, "critical": 2}
_TONES: Final = {"debug": "dim", "info": "dim", "warning": "warn", "error": "error", "critical": "error"}


def rows(log: LogView, level: str = "info") -> tuple[Row, ...]:
    """The lines of at least this level, newest last.

    A line is known by its time and how many of that very moment came before it: the node keeps a fixed number
    of lines, so that a plain index would make every row another one at each new line.
    """
    least = _RANK.get(level, 0)
    made: list[Row] = []
    last, same = -1, 0
    for line in log.lines:
        same = same + 1 if line.at_ms == last else 0
        last = line.at_ms
        if _RANK.get(line.level, 0) >= least:
            made.append(_row(line, f"{line.at_ms}.{same}"))
    return tuple(made)


def detail(row: Row) -> tuple[tuple[Piece, ...], ...]:
    """Everything of one line, to be wrapped."""
    time, level, source, text = row.cells
    return (
        (Piece(time.text, "dim"), Piece("  "), Piece(level.text, level.tone)),
        (Piece(source.text, "dim"),),
        (),
        (Piece(text.text),),
    )


def hidden(log: LogView, shown: Iterable[Row]) -> int:
    """How many lines the level leaves out."""
    return len(log.lines) - sum(1 for _ in shown)


def _row(line: LogLine, key: str) -> Row:
    tone = _TONES.get(line.level, "dim")
    return Row(
        key,
        (
            Cell(clock_time(line.at_ms), "dim", line.at_ms),
            Cell(f"{MARKS[tone]} {line.level}", tone, _RANK.get(line.level, 0)),
            Cell(line.source, "dim"),
            Cell(line.text),
        ),
    )

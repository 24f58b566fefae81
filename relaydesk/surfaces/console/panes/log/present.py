"""The log as rows and as a detail. Lines were made safe where the node took them down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from relaydesk.core.view.amounts import plural
from relaydesk.core.view.sections import LogLine, LogView
from relaydesk.surfaces.console.panes.prose import marked
from relaydesk.surfaces.console.pieces import MARKS, Piece
from relaydesk.surfaces.console.states import clock_time
from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.rows import Cell, Row
from relaydesk.surfaces.console.widgets.spans import Line

COLUMNS: Final = (
    Column("time", "TIME", width=8, priority=1),
    Column("level", "LEVEL", width=7, priority=2),
    Column("source", "SOURCE", width=8, priority=3),
    Column("text", "TEXT", fill=1, min_width=24),
)
# What each choice of the level key lets through, least to most.
LEVELS: Final = ("info", "warning", "error")
_RANK: Final = {"debug": 0, "info": 0, "warning": 1, "error": 2, "critical": 2}
_WORDS: Final = {"warning": "warn", "critical": "fatal"}
# Which part of the node wrote a line, by the start of its module's name; the detail has the whole name.
_SOURCES: Final = (
    ("engine.gateway", "requests"),
    ("surfaces.public", "requests"),
    ("engine.pool", "models"),
    ("engine.jobs", "jobs"),
    ("engine.infer", "engine"),
    ("engine.pull", "pull"),
    ("engine.tls", "tls"),
    ("engine.access", "keys"),
    ("engine", "node"),
    ("store", "storage"),
    ("config", "settings"),
    ("surfaces.control", "control"),
    ("surfaces.console", "console"),
    ("surfaces", "node"),
)
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
        (Piece(str(source.sort or source.text), "dim"),),
        (),
        (Piece(text.text),),
    )


def source_word(source: str) -> str:
    """Which part of the node that is, in a word; the last part of a name that is not ours."""
    return next(
        (word for start, word in _SOURCES if f"{source}.".startswith(f"{start}.")), source.rsplit(".")[-1]
    )


def none_of(level: str) -> str:
    """What to say where the level leaves nothing."""
    return f"No line is {level} or worse. l shows more, esc everything."


def sign(level: str, left_out: int, width: int) -> tuple[Line, ...]:
    """That the level leaves something out, and what shows it again."""
    if level == LEVELS[0]:
        return ()
    return marked(
        "warn", f"Only {level} and worse, {plural(left_out, 'line')} left out: esc shows all.", width
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
            Cell(f"{MARKS[tone]} {_WORDS.get(line.level, line.level)}", tone, _RANK.get(line.level, 0)),
            Cell(source_word(line.source), "dim", line.source),
            Cell(line.text),
        ),
    )

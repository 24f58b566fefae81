"""Audit records as rows and one as a detail, and the filter in words."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from relaydesk.core.access.audit import AuditFilter, AuditRecord
from relaydesk.core.view.amounts import millis, plural
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, marked, paragraph
from relaydesk.surfaces.console.panes.requests.present import CODES, network_facts
from relaydesk.surfaces.console.pieces import MARKS
from relaydesk.surfaces.console.states import Notice, clock_time
from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.rows import BLANK, Cell, Row
from relaydesk.surfaces.console.widgets.spans import Line, Span

COLUMNS: Final = (
    Column("time", "TIME", width=8, priority=1, descending=True),
    Column("outcome", "OUTCOME", width=11),
    Column("why", "WHY", width=14, min_width=13, priority=4),
    Column("key", "KEY", width=10, min_width=7, priority=2),
    Column("model", "MODEL", width=14, fill=1, min_width=10, priority=3),
    Column("tokens", "IN+OUT", width=9, align="right", priority=6, descending=True),
    Column("total", "TOOK", width=7, align="right", priority=5, descending=True),
    Column("client", "FROM", width=15, min_width=9, priority=7),
    Column("route", "ROUTE", width=20, min_width=12, fill=1, priority=8),
    Column("placement", "WHERE", width=8, priority=9),
)
EMPTY: Final = Notice(
    "No request has a record yet.", "every request that a key opened gets one when it ends: 4 shows the keys"
)
OUTCOMES: Final = ("failed", "cancelled", "refused", "done")
TONES: Final = {"done": "ok", "failed": "error", "cancelled": "warn", "refused": "warn"}
_WORDS: Final = {
    "done": "It was answered.",
    "failed": "It failed.",
    "cancelled": "Its client left before the end.",
    "refused": "It was refused before any work.",
}
_ROOM: Final = 11


def rows(records: tuple[AuditRecord, ...], now_ms: int) -> tuple[Row, ...]:
    """The records as the node gives them, newest first; what is not of today shows its day for its time."""
    today = _local(now_ms).date()
    return tuple(_row(record, _local(record.at_ms).date() == today) for record in records)


def _local(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone()


def row_key(record: AuditRecord) -> str:
    """What a record is known by: clients may choose the same id twice."""
    return f"{record.id}.{record.at_ms}"


# A record changes no more.
@lru_cache(maxsize=512)
def _row(record: AuditRecord, of_today: bool) -> Row:
    tone = TONES.get(record.outcome, "dim")
    tokens, at = record.prompt_tokens + record.completion_tokens, _local(record.at_ms)
    return Row(
        row_key(record),
        (
            Cell(clock_time(record.at_ms) if of_today else f"{at:%b} {at.day}", "dim", record.at_ms),
            Cell(f"{MARKS[tone]} {record.outcome}", tone, record.outcome),
            Cell(CODES.get(record.code, record.code.replace("_", " ")), "" if tone == "ok" else tone),
            Cell(record.key),
            Cell(record.model or "–", "" if record.model else "dim"),
            Cell(f"{record.prompt_tokens}+{record.completion_tokens}", "", tokens) if tokens else BLANK,
            Cell(millis(record.total_ms), "strong", record.total_ms),
            Cell(record.client or "–", "dim"),
            Cell(record.route, "dim"),
            Cell(record.placement or "–", "dim"),
        ),
    )


def detail(record: AuditRecord, width: int) -> tuple[Line, ...]:
    """Every field of a record."""
    tone = TONES.get(record.outcome, "dim")
    said = f"{_WORDS.get(record.outcome, record.outcome)} HTTP {record.status}."
    lines: list[Line] = [*marked(tone, said, width)]
    if record.code:
        lines += paragraph(f"Why: {record.code.replace('_', ' ')} ({record.code}).", width, indent=2)
    lines.append(NOTHING)
    for label, text in _facts(record):
        lines += fact(label, text, width, room=_ROOM)
    lines += [NOTHING, (Span("Its time", "strong"),)]
    for label, value in _times(record):
        lines += fact(label, millis(value), width, room=_ROOM)
    return tuple(lines)


def _facts(record: AuditRecord) -> tuple[tuple[str, str], ...]:
    way = "streamed" if record.stream else "in one piece"
    choices = f", {plural(record.choices, 'answer')}" if record.choices > 1 else ""
    cached = f" ({record.cached_tokens} of them cached)" if record.cached_tokens else ""
    at = datetime.fromtimestamp(record.at_ms / 1000, UTC)
    return (
        ("at", f"{clock_time(record.at_ms)} here, {at:%Y-%m-%d %H:%M:%S} UTC"),
        ("key", record.key),
        ("its id", record.key_id),
        ("from", record.client or "–"),
        ("asked", f"{record.route}, {way}{choices}"),
        ("model", record.model or "–"),
        ("ran on", record.placement or "–"),
        ("seen by", ", ".join(record.machines) or "no machine"),
        *network_facts(record)[1:],
        ("tokens", f"{record.prompt_tokens} in{cached}, {record.completion_tokens} out"),
        ("id", record.id),
    )


def _times(record: AuditRecord) -> tuple[tuple[str, int | None], ...]:
    return (
        ("waited", record.queue_ms),
        ("load", record.load_ms),
        ("to first", record.first_token_ms),
        ("in all", record.total_ms),
    )


def sign(wanted: AuditFilter, width: int) -> tuple[Line, ...]:
    """What is left out, how to see it again, and the command line that shows the same."""
    only = [f"{name} {value}" for name, value in _wanted(wanted)]
    if not only:
        return ()
    line = " ".join(f"--{name} {value}" for name, value in _wanted(wanted))
    return (
        *marked("warn", f"Only {', '.join(only)}: esc shows everything.", width),
        *paragraph(f"relaydesk audit tail {line}", width, "dim", indent=2),
    )


def _wanted(wanted: AuditFilter) -> tuple[tuple[str, str], ...]:
    pairs = (("key", wanted.key), ("model", wanted.model), ("outcome", wanted.outcome))
    return tuple(pair for pair in pairs if pair[1])

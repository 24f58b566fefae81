"""Keys as rows: what each may use, and how much of it is used."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from relaydesk.core.view.amounts import count, duration
from relaydesk.core.view.sections import KeysView, KeyView
from relaydesk.surfaces.console.states import Notice
from relaydesk.surfaces.console.widgets.bar import Part, stacked_bar
from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.rows import BLANK, Cell, Row
from relaydesk.surfaces.console.widgets.spans import line_text

BAR: Final = 10
COLUMNS: Final = (
    Column("name", "KEY", width=10, fill=1, min_width=9),
    Column("bar", "TODAY", width=BAR, priority=1, descending=True),
    Column("used", "TOKENS", width=7, align="right", priority=2, descending=True),
    Column("limit", "LIMIT", width=7, align="right", priority=2, descending=True),
    Column("reserved", "ASIDE", width=7, align="right", priority=8, descending=True),
    Column("running", "RUN", width=4, align="right", priority=3, descending=True),
    Column("minute", "MINUTE", width=6, align="right", priority=4, descending=True),
    Column("expires", "EXPIRES", width=8, priority=5),
    Column("models", "MODELS", width=10, min_width=8, fill=1, priority=6),
    Column("fingerprint", "SHA-256", width=8, priority=9),
)
EMPTY: Final = Notice(
    "No key opens this hub.", "restart the node: it makes one, or takes RELAY_API_KEY from its environment"
)
# From this share of a limit on it is worth a look.
_MUCH: Final = 0.8


def rows(keys: KeysView, now_ms: int, *, ascii: bool = False) -> tuple[Row, ...]:
    """Every key, with what it uses now and has used today."""
    return tuple(_row(key, _expires(key, now_ms), ascii=ascii) for key in keys.keys)


def find(keys: KeysView | None, name: str) -> KeyView | None:
    """The key of a row."""
    return next((key for key in keys.keys if key.name == name), None) if keys is not None else None


def parts(key: KeyView) -> tuple[Part, Part]:
    """The tokens of today: used, and set aside for what runs. Each has a filling of its own."""
    return (Part("used", key.used, tone(key)), Part("set aside", key.reserved, "part-4"))


def tone(key: KeyView) -> str:
    """How the tokens of today stand to their limit."""
    return _share_tone(key.used, key.tokens_per_day)


# Most keys stand as they did a second ago, and a bar is most of a row's work.
@lru_cache(maxsize=2048)
def _row(key: KeyView, expires: Cell, *, ascii: bool) -> Row:
    held, limit = key.used + key.reserved, key.tokens_per_day
    return Row(
        key.name,
        (
            Cell(key.name, "strong"),
            _bar(key, ascii=ascii),
            Cell(count(key.used), "" if key.used else "dim", key.used),
            Cell(count(limit), "", limit) if limit else Cell("none", "dim", float("inf")),
            Cell(count(key.reserved), "", key.reserved) if key.reserved else BLANK,
            _of(key.running, key.max_concurrency),
            _of(key.minute_used, key.requests_per_minute),
            expires,
            Cell(", ".join(key.models) or "all", "" if key.models else "dim"),
            Cell(key.fingerprint, "dim", held),
        ),
    )


def _bar(key: KeyView, *, ascii: bool) -> Cell:
    if not key.tokens_per_day:
        return Cell("–", "faint", -1)
    text = line_text(stacked_bar(parts(key), key.tokens_per_day, BAR, ascii=ascii))
    return Cell(text, tone(key), (key.used + key.reserved) / key.tokens_per_day)


def _of(value: int, limit: int) -> Cell:
    text = f"{value}/{count(limit)}" if limit else str(value)
    shown = _share_tone(value, limit) if limit and value else "" if value else "dim"
    return Cell(text, "" if shown == "accent" else shown, value)


def _share_tone(value: int, limit: int) -> str:
    if not limit or value < _MUCH * limit:
        return "accent"
    return "warn" if value < limit else "error"


def _expires(key: KeyView, now_ms: int) -> Cell:
    at = key.expires_at_ms
    if not at:
        return Cell("never", "dim", float("inf"))
    if at <= now_ms:
        return Cell("expired", "error", at)
    return Cell(until(at, now_ms), "warn" if at - now_ms < 7 * 86_400_000 else "", at)


def until(at_ms: int, now_ms: int) -> str:
    """How long until then, in one unit, so that it stands still."""
    seconds = max(0, at_ms - now_ms) // 1000
    step = next((step for step in (86_400, 3_600, 60) if seconds >= step), 1)
    return f"{duration(seconds // step * step)}"


def age(since_ms: int, now_ms: int) -> str:
    """How long ago, to the minute, so that it stands still; a dash where that is not known."""
    if not since_ms:
        return "–"
    seconds = (now_ms - since_ms) / 1000
    return "just now" if seconds < 60 else duration(seconds // 60 * 60)


def day_time(at_ms: int) -> str:
    """A time as its day and minute in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")

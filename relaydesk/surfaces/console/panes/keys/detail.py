"""One key: its quotas as bars, what it may do, what it used, and what its client needs."""

from __future__ import annotations

from typing import Final

from relaydesk.core.access.key import DEFAULT_KEY
from relaydesk.core.access.quota import day_of
from relaydesk.core.view.amounts import count
from relaydesk.core.view.sections import FaultView, KeyView, MetaView
from relaydesk.surfaces.console.panes.keys import usage as days
from relaydesk.surfaces.console.panes.keys.client import client_lines
from relaydesk.surfaces.console.panes.keys.present import age, day_time, parts, tone, until
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, fault_lines, marked
from relaydesk.surfaces.console.widgets.bar import fill, stacked_bar
from relaydesk.surfaces.console.widgets.cells import fit
from relaydesk.surfaces.console.widgets.gauge import gauge
from relaydesk.surfaces.console.widgets.spans import Line, Span

_ROOM: Final = 13
_GAUGE: Final = 24


def lines(
    key: KeyView,
    meta: MetaView | None,
    usage: days.Usage | FaultView | None,
    now_ms: int,
    width: int,
    *,
    ascii: bool = False,
) -> tuple[Line, ...]:
    """Everything of a key; ``usage`` is None until it is there."""
    made: list[Line] = [(Span(key.name, "strong"),), NOTHING, *_quotas(key, width, ascii=ascii), NOTHING]
    for label, text in _facts(key, now_ms):
        made += fact(label, text, width, room=_ROOM)
    made.append(NOTHING)
    if isinstance(usage, FaultView):
        made += fault_lines(usage, width)
    elif usage is None:
        made += marked("info", "What it used by day is being fetched.", width)
    else:
        made += days.lines(usage, day_of(now_ms), key.used, width, ascii=ascii)
    return (*made, NOTHING, *client_lines(meta, width, key))


def _quotas(key: KeyView, width: int, *, ascii: bool) -> tuple[Line, ...]:
    made: list[Line] = []
    if key.tokens_per_day:
        left = max(0, key.tokens_per_day - key.used - key.reserved)
        head = f"{count(key.used)} of {count(key.tokens_per_day)} tokens today"
        made += fact("tokens", head, width, tone(key) if tone(key) != "accent" else "", room=_ROOM)
        made.append(stacked_bar(parts(key), key.tokens_per_day, width, ascii=ascii))
        used, aside = (fill(at, ascii=ascii) for at in (0, 1))
        words = f"{used} used  {aside} {count(key.reserved)} set aside  {count(left)} left"
        made.append((Span(fit(words, width), "dim"),))
    else:
        made += fact("tokens", f"{count(key.used)} today, no limit", width, room=_ROOM)
    made += _gauge("at once", key.running, key.max_concurrency, width, ascii=ascii)
    return (*made, *_gauge("this minute", key.minute_used, key.requests_per_minute, width, ascii=ascii))


def _gauge(label: str, value: int, limit: int, width: int, *, ascii: bool) -> tuple[Line, ...]:
    if not limit:
        return fact(label, f"{value}, no limit", width, room=_ROOM)
    text = f"{value} of {count(limit)}  "
    room = min(_GAUGE, width - _ROOM - len(text))
    line = (Span(fit(label, _ROOM), "dim"), Span(text))
    return ((*line, *gauge(value / limit, room, ascii=ascii, percent=False)) if room > 3 else line,)


def _network(key: KeyView) -> str:
    """Empty where it may not use it."""
    if not key.network:
        return ""
    if not key.credit_per_day:
        return "models of the relay network that are free"
    held = f", {key.credit_held:,} set aside" if key.credit_held else ""
    return f"{key.credit_spent:,} of {key.credit_per_day:,} microunits spent today{held}"


def _facts(key: KeyView, now_ms: int) -> tuple[tuple[str, str], ...]:
    at = key.expires_at_ms
    left = "expired" if at <= now_ms else f"in {until(at, now_ms)}"
    default = key.name == DEFAULT_KEY
    since = age(key.created_at_ms, now_ms)
    return (
        ("models", ", ".join(key.models) or "all"),
        ("expires", f"{left}, {day_time(at)}" if at else "never"),
        ("network", _network(key)),
        ("place", "only in a URL: /k/<key>/v1" if key.in_path else ""),
        ("made", f"{since}{'' if since in ('–', 'just now') else ' ago'}"),
        ("kept in", key.source if default else ""),
        ("fingerprint", f"{key.fingerprint}, the start of its SHA-256"),
    )

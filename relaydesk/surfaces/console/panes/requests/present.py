"""Requests as rows, and one of them as a detail with a bar of where its time went."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from relaydesk.core.access.audit import AuditRecord
from relaydesk.core.gateway.away import NETWORK
from relaydesk.core.text import SafeText
from relaydesk.core.view.amounts import millis, plural, rate
from relaydesk.core.view.sections import FaultView, RequestsView, RequestView
from relaydesk.core.view.timing import Part as TimePart
from relaydesk.core.view.timing import PartName, Timing, parts
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, fault_lines, marked
from relaydesk.surfaces.console.pieces import MARKS
from relaydesk.surfaces.console.states import Notice, clock_time
from relaydesk.surfaces.console.widgets.bar import Part, fill, stacked_bar
from relaydesk.surfaces.console.widgets.cells import fit
from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.rows import BLANK, Cell, Row
from relaydesk.surfaces.console.widgets.spans import Line, Span

COLUMNS: Final = (
    Column("state", "STATE", width=12),
    Column("model", "MODEL", width=14, fill=1, min_width=10, priority=1),
    Column("key", "KEY", width=10, min_width=7, priority=8),
    Column("wait", "WAIT", width=7, align="right", priority=5, descending=True),
    Column("load", "LOAD", width=7, align="right", priority=6, descending=True),
    Column("first", "FIRST", width=7, align="right", priority=3, descending=True),
    Column("rate", "TOK/S", width=5, align="right", priority=4, descending=True),
    Column("tokens", "IN+OUT", width=9, align="right", priority=5, descending=True),
    Column("total", "TOTAL", width=7, align="right", descending=True),
    Column("outcome", "OUTCOME", width=16, min_width=13, priority=2),
    Column("id", "ID", width=28, min_width=12, priority=9),
)
EMPTY: Final = Notice(
    "Nobody has asked anything yet.",
    "a client needs the address and the key: 4 shows them, or `relaydesk token --api`",
)
# What each state is marked with, and its word.
TONES: Final = {
    "queued": "info",
    "loading": "info",
    "prefill": "info",
    "generating": "info",
    "done": "ok",
    "failed": "error",
    "cancelled": "warn",
}
_WORDS: Final = {"queued": "waiting", "prefill": "prompt", "generating": "answering"}
_PARTS: Final[dict[PartName, tuple[str, str]]] = {
    "waited": ("waited for a slot", "part-4"),
    "load": ("loading the model", "part-2"),
    "prompt": ("read the prompt", "part-3"),
    "answer": ("wrote the answer", "part-1"),
}
# Codes in the width that a list has for them; the detail says all of it.
CODES: Final = {
    "model_unavailable": "unavailable",
    "model_not_found": "no such model",
    "invalid_json": "bad JSON",
    "tokens_per_day_exceeded": "day quota",
    "requests_per_minute_exceeded": "minute quota",
    "concurrency_exceeded": "too many",
    "model_load_failed": "load failed",
    "model_load_timeout": "load timeout",
    "model_unloaded": "unloaded",
    "context_length_exceeded": "too long",
    "invalid_request": "bad request",
    "engine_rejected": "rejected",
    "client_closed": "client left",
    "shutting_down": "node stops",
    "internal_error": "our fault",
    "no_relay_available": "no relay",
    "no_operator": "none serves",
    "operators_busy": "nodes busy",
    "operators_unreachable": "unreachable",
    "price_ceiling_exceeded": "too dear",
    "ticket_price_rejected": "price refused",
    "credit_per_day_exceeded": "day credit",
    "credit_missing": "no credit",
    "no_pinned_operator": "pinned out",
}
# What to do about a request that failed, where the node did not say.
_NEXT: Final = {
    "client_closed": "nothing here: its client hung up",
    "shutting_down": "ask again once the node is back",
    "model_load_failed": "5 has the engine's own words",
    "model_load_timeout": "5 says how long it took",
    "context_length_exceeded": "shorten the prompt, or give the model more context: `relaydesk model set`",
    "invalid_json": "the client has to send another body",
    "invalid_request": "the client has to send another body",
}
_NAME: Final = max(len(name) for name, _ in _PARTS.values())


def rows(requests: RequestsView, now_ms: int, *, failures: bool = False) -> tuple[Row, ...]:
    """Those under way first, then the newest that ended; ``failures`` leaves only what went wrong."""
    ended = requests.recent
    if failures:
        return tuple(_ended(view) for view in ended if view.state in ("failed", "cancelled"))

    def now(view: RequestView) -> tuple[Cell, ...]:
        return _cells(view, now_ms)

    return (*(Row.late(view.id, now, view) for view in requests.in_flight), *map(_ended, ended))


def find(requests: RequestsView, key: str) -> RequestView | None:
    """The request of a row."""
    everything = (*requests.in_flight, *requests.recent)
    return next((view for view in everything if view.id == key), None)


def sign(left_out: int, width: int) -> tuple[Line, ...]:
    """That only failures are listed, and what shows the rest again."""
    return marked("warn", f"Only what failed or was broken off, {left_out} left out: esc shows all.", width)


def summary(requests: RequestsView) -> str:
    """Both counts in a few words."""
    return f"{len(requests.in_flight)} under way, {len(requests.recent)} ended"


# What has ended changes no more, and there are hundreds of them.
@lru_cache(maxsize=1024)
def _ended(view: RequestView) -> Row:
    return Row(view.id, _cells(view, 0))


def _cells(view: RequestView, now_ms: int) -> tuple[Cell, ...]:
    timing = parts(view, now_ms)
    tone = TONES.get(view.state, "dim")
    return (
        Cell(f"{MARKS[tone]} {state_word(view)}", tone, view.state),
        Cell(view.model) if view.model else Cell("–", "dim"),
        Cell(view.key, "dim"),
        _time(timing.ms("waited")),
        _time(timing.ms("load")),
        _time(view.first_token_ms),
        Cell(rate(view.tokens_per_s), "", view.tokens_per_s) if view.tokens_per_s else BLANK,
        _tokens(view),
        Cell(millis(timing.total_ms), "strong", timing.total_ms),
        _outcome(view),
        Cell(view.id, "dim"),
    )


def state_word(view: RequestView) -> str:
    """The state as a word; how far a prompt is read while it is."""
    word = _WORDS.get(view.state, view.state)
    if view.state == "prefill" and view.prompt_tokens:
        return f"{word} {min(99, 100 * view.prompt_done // view.prompt_tokens)}%"
    return word


def _time(value: int | None) -> Cell:
    # What took no time says so quietly.
    return BLANK if value is None else Cell(millis(value), "" if value >= 100 else "dim", value)


def _tokens(view: RequestView) -> Cell:
    total = view.prompt_tokens + view.completion_tokens
    return Cell(f"{view.prompt_tokens}+{view.completion_tokens}", "", total) if total else BLANK


def _outcome(view: RequestView) -> Cell:
    if view.fault is not None:
        code = view.fault.code
        return Cell(CODES.get(code, code.replace("_", " ")), TONES.get(view.state, "error"))
    return Cell(", ".join(view.finish_reasons), "dim")


def detail(view: RequestView, now_ms: int, width: int, *, ascii: bool = False) -> tuple[Line, ...]:
    """One request's life."""
    timing = parts(view, now_ms)
    tone = TONES.get(view.state, "dim")
    status = f", HTTP {view.status}" if view.status else ""
    lines: list[Line] = [*marked(tone, f"{state_word(view)}{status}", width), NOTHING]
    lines += time_lines(timing, width, ascii=ascii)
    lines.append(NOTHING)
    if view.fault is not None:
        lines += [*fault_lines(_with_hint(view, view.fault), width), NOTHING]
    for label, text in _facts(view):
        lines += fact(label, text, width)
    lines += [NOTHING, *fact("shell", f"relaydesk request show {view.id}", width, "dim")]
    return tuple(lines)


def _with_hint(view: RequestView, fault: FaultView) -> FaultView:
    """The fault with a next step, where the node gave none."""
    if fault.hint:
        return fault
    fits = f"`relaydesk model fit {view.model}` says what would help; so does 2" if view.model else ""
    hint = fits if fault.code == "model_unavailable" else _NEXT.get(fault.code, "")
    return msgspec.structs.replace(fault, hint=SafeText(hint or "5 has the log around its time"))


def _facts(view: RequestView) -> tuple[tuple[str, str], ...]:
    way = "streamed" if view.stream else "in one piece"
    choices = f", {view.choices} answers" if view.choices > 1 else ""
    cached = f" ({view.cached_tokens} of them cached)" if view.cached_tokens else ""
    tokens = f"{view.prompt_tokens} in{cached}, {view.completion_tokens} out"
    speed = f", {rate(view.tokens_per_s)} tokens/s" if view.tokens_per_s else ""
    return (
        ("model", view.model or "–"),
        ("key", view.key),
        ("asked", f"{view.route}, {way}{choices}"),
        ("at", clock_time(view.started_at_ms)),
        ("tokens", f"{tokens}{speed}"),
        *network_facts(view),
        ("ended by", ", ".join(view.finish_reasons)),
        ("id", view.id),
    )


def network_facts(found: RequestView | AuditRecord) -> tuple[tuple[str, str], ...]:
    """Who carried and who read what went to the relay network, and what that cost."""
    if not found.targets:
        return (("goes to", "the relay network"),) if found.placement == NETWORK else ()
    return (
        ("read by", ", ".join(found.targets)),
        ("via relay", ", ".join(found.relays) or "not known"),
        ("paid", f"{found.paid:,} microunits"),
    )


def time_lines(timing: Timing, width: int, *, ascii: bool = False) -> tuple[Line, ...]:
    """The bar, its parts in words, and their sum; the largest part is pointed at."""
    shown = [Part(*_PARTS[part.name][:1], part.ms or 0, _PARTS[part.name][1]) for part in timing.parts]
    lines: list[Line] = []
    if timing.total_ms > 0:
        lines += [stacked_bar(shown, timing.total_ms, width, ascii=ascii), NOTHING]
    amounts = [millis(part.ms) for part in timing.parts]
    total = millis(timing.total_ms)
    room = max(len(text) for text in (*amounts, total))
    for at, (part, amount) in enumerate(zip(timing.parts, amounts, strict=True)):
        most = part.name == timing.largest
        name, tone = _PARTS[part.name]
        line = (
            Span(fill(at, ascii=ascii) * 2, tone if part.ms else "faint"),
            Span(f" {fit(name, _NAME)}  ", "strong" if most else ""),
            Span(fit(amount, room, "right"), "strong" if most else ""),
        )
        lines.append((*line, *_note(part, timing, width - _NAME - room - 7, most=most)))
    so_far = "  so far" if timing.running else ""
    lines.append(
        (Span(f"   {fit('total', _NAME)}  ", "dim"), Span(fit(total, room, "right")), Span(so_far, "dim"))
    )
    return tuple(lines)


def _note(part: TimePart, timing: Timing, room: int, *, most: bool) -> Line:
    """What a part did, as far as there is room; that it took most of the time always has some."""
    said = "◂ most" if most else ""
    room -= len(said) + (2 if said else 0)
    texts = []
    if part.name == "load" and part.ms is None:
        texts.append("it was loaded" if timing.loaded else "" if timing.running else "it never came so far")
    if part.open:
        texts.append("under way")
    if part.tokens:
        texts.append(plural(part.tokens, "token"))
    if part.tokens_per_s:
        texts.append(f"{rate(part.tokens_per_s)}/s")
    texts = [text for text in texts if text]
    while texts and len(", ".join(texts)) > room:
        texts.pop()
    note = ", ".join(texts)
    return (
        *((Span(f"  {said}", "warn"),) if said else ()),
        *((Span(f"  {note}", "dim"),) if note else ()),
    )

"""Keys as rows, and what a client needs to use one."""

from __future__ import annotations

from typing import Final

from relaydesk.core.view.amounts import duration, plural
from relaydesk.core.view.sections import KeysView, KeyView, MetaView, RequestsView
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, paragraph, path_fact
from relaydesk.surfaces.console.states import Notice
from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.rows import Cell, Row
from relaydesk.surfaces.console.widgets.spans import Line, Span

COLUMNS: Final = (
    Column("name", "KEY", width=10, fill=1),
    Column("fingerprint", "FINGERPRINT", width=11, priority=1),
    Column("source", "FROM", width=16, min_width=10, priority=2),
    Column("age", "SINCE", width=12, min_width=8, priority=3),
    Column("running", "RUN", width=4, align="right", priority=4, descending=True),
    Column("asked", "ASKED", width=6, align="right", priority=5, descending=True),
)
EMPTY: Final = Notice(
    "No key opens this hub.", "restart the node: it makes one, or takes RELAY_API_KEY from its environment"
)


def rows(keys: KeysView, requests: RequestsView | None, now_ms: int) -> tuple[Row, ...]:
    """Every key, with what it asks now and has asked of late."""
    return tuple(_row(key, requests, now_ms) for key in keys.keys)


def find(keys: KeysView | None, name: str) -> KeyView | None:
    """The key of a row."""
    return next((key for key in keys.keys if key.name == name), None) if keys is not None else None


def _row(key: KeyView, requests: RequestsView | None, now_ms: int) -> Row:
    running, ended = _uses(key.name, requests)
    return Row(
        key.name,
        (
            Cell(key.name, "strong"),
            Cell(key.fingerprint, "dim"),
            Cell(key.source),
            Cell(age(key.created_at_ms, now_ms), "dim", -key.created_at_ms),
            Cell(str(running), "strong" if running else "dim", running),
            Cell(str(running + ended), "" if running + ended else "dim", running + ended),
        ),
    )


def _uses(name: str, requests: RequestsView | None) -> tuple[int, int]:
    if requests is None:
        return 0, 0
    return (
        sum(1 for each in requests.in_flight if each.key == name),
        sum(1 for each in requests.recent if each.key == name),
    )


def age(since_ms: int, now_ms: int) -> str:
    """How long ago, to the minute, so that it stands still; a dash where that is not known."""
    if not since_ms:
        return "–"
    seconds = (now_ms - since_ms) / 1000
    return "just now" if seconds < 60 else duration(seconds // 60 * 60)


def detail(
    key: KeyView, meta: MetaView | None, requests: RequestsView | None, width: int
) -> tuple[Line, ...]:
    """A key, and the lines that a client's shell needs to use it."""
    running, ended = _uses(key.name, requests)
    lines: list[Line] = [(Span(key.name, "strong"),), NOTHING]
    lines += fact("from", key.source, width, room=13)
    lines += fact("fingerprint", f"{key.fingerprint}, the start of its SHA-256", width, room=13)
    lines += fact("asked", f"{plural(running + ended, 'request')}, {running} under way", width, room=13)
    return (*lines, NOTHING, *client_lines(meta, width))


def client_lines(meta: MetaView | None, width: int) -> tuple[Line, ...]:
    """The three things that a client needs, and how programs of OpenAI's library are told."""
    if meta is None or not meta.listening:
        return ()
    address = f"{meta.listening[0]}/v1"
    lines: list[Line] = [(Span("What a client needs", "strong"),)]
    lines += fact("address", address, width, "accent")
    lines += fact("key", "v shows it, `relaydesk token --api` prints it", width)
    if meta.ca_path and address.startswith("https"):
        lines += path_fact("trust", meta.ca_path, width)
        lines += fact("SHA-256", _groups(meta.fingerprint), width, "dim")
    lines += [NOTHING, *paragraph("For programs that use OpenAI's library:", width, "dim")]
    for line in (f"OPENAI_BASE_URL={address}", "OPENAI_API_KEY=$(relaydesk token --api)"):
        lines += paragraph(line, width, indent=2)
    return tuple(lines)


def _groups(fingerprint: str) -> str:
    """Eight bytes at a time, so that a line ends between two groups."""
    pairs = fingerprint.split(":")
    return " ".join(":".join(pairs[at : at + 8]) for at in range(0, len(pairs), 8))

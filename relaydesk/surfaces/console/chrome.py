"""What stands around every pane, as pieces: strip, tabs, footer, and the line of a terminal too small."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from relaydesk.core.commands import Access
from relaydesk.core.view.amounts import duration, plural, rate
from relaydesk.core.view.node_view import NodeView
from relaydesk.core.view.sections import AlertsView, HealthView, MetaView
from relaydesk.surfaces.console.action import Action, key_name
from relaydesk.surfaces.console.data import Link
from relaydesk.surfaces.console.list_detail import SPLIT_COLUMNS
from relaydesk.surfaces.console.pieces import Group, Piece, cut, fit, mark, spread
from relaydesk.surfaces.console.registry import PaneSpec

# Below this nothing can be shown that would be worth reading.
FLOOR: Final = (60, 16)
# Classes of the screen, by the least columns and rows they stand for.
WIDTHS: Final = [(0, "-tiny-w"), (FLOOR[0], "-narrow"), (100, "-wide"), (SPLIT_COLUMNS, "-split")]
HEIGHTS: Final = [(0, "-tiny-h"), (FLOOR[1], "-short"), (24, "-normal"), (32, "-tall")]
# The actions that stand at the footer's right end, on every pane.
CORNER: Final = ("app.help", "app.palette", "app.quit")


@dataclass(frozen=True, slots=True)
class Offer:
    """An action as the footer offers it; ``reason`` says why it cannot be done now."""

    action: Action
    keys: str
    label: str
    reason: str = ""
    weight: int | None = None

    @property
    def footer(self) -> int:
        """The action's weight in the footer; what undoes something in force is not to be missed."""
        if self.label != self.action.label:
            return 85
        return self.action.footer if self.weight is None else self.weight


def refusal(action: Action, link: Link, access: Access) -> str:
    """Why the frame cannot do an action now, whatever the pane; empty where it can."""
    if action.writes and access is Access.READ:
        return "this console is read-only"
    if action.command is not None and link.state != "live":
        return "there is no node to ask"
    return "the node is there" if action.id == "view.retry" and link.state != "lost" else ""


def strip(view: NodeView, link: Link, mode: str, paused: bool, now_ms: int, width: int) -> tuple[Piece, ...]:
    """The status strip: which node, how it does, and whether something wants an operator."""
    alert = _alert(view.alerts.value, link)
    room = width - 2 - sum(piece.width for piece in alert) - 2
    groups = [Group((Piece(mode, "accent"),), 100), *_standing(link, paused, view.meta.value)]
    groups += _numbers(view.meta.value, view.health.value, link, now_ms)
    left = fit(groups, room, gap="   ")
    return spread((Piece(" "), *left), (*alert, Piece(" ")), width)


def _standing(link: Link, paused: bool, meta: MetaView | None) -> list[Group]:
    groups = []
    if link.state == "lost" and link.code == "conflict":
        groups.append(Group((mark("warn", "another version: restart node and console"),), 98))
    elif link.state == "lost":
        wait = f", next try within {link.retry_s:.0f} s" if link.retry_s >= 1 else ", trying"
        groups.append(Group((mark("warn", f"no node{wait}"),), 98))
    elif link.state == "connecting":
        groups.append(Group((mark("info", "connecting"),), 98))
    elif meta is not None and meta.phase != "ready":
        groups.append(Group((mark("warn" if meta.phase == "draining" else "info", meta.phase),), 97))
    if paused:
        groups.append(Group((mark("warn", "paused"),), 96))
    return groups


def _numbers(meta: MetaView | None, health: HealthView | None, link: Link, now_ms: int) -> list[Group]:
    groups = []
    if meta is not None:
        groups.append(_pair("node", meta.node[:8], 40))
        if link.state == "live":
            groups.append(_pair("up", duration_short((now_ms - meta.started_at_ms) / 1000), 50))
    if health is not None and link.state == "live":
        queued = f" +{health.queued} queued" if health.queued else ""
        groups.append(_pair("in flight", f"{health.in_flight}{queued}", 80))
        groups.append(_pair("tokens/s", rate(health.tokens_per_s), 70))
        groups.append(_pair("lag", f"{health.loop_lag_p99_ms:.0f} ms", 60))
    return groups


def duration_short(seconds: float) -> str:
    """An uptime: seconds only in the first minute, so that the strip is still."""
    return duration(seconds) if seconds < 60 else duration(seconds // 60 * 60)


def _pair(name: str, value: str, priority: int) -> Group:
    return Group((Piece(f"{name} ", "dim"), Piece(value)), priority)


def _alert(alerts: AlertsView | None, link: Link) -> tuple[Piece, ...]:
    if alerts is None or link.state != "live":
        return (Piece("alerts unknown", "dim"),)
    if not alerts.alerts:
        return (mark("ok", "no alerts"),)
    tone = "error" if any(each.severity == "error" for each in alerts.alerts) else "warn"
    return (mark(tone, plural(len(alerts.alerts), "alert")),)


def tabs(panes: Sequence[PaneSpec], current: str, width: int) -> tuple[Piece, ...]:
    """The panes by number: with whole names, with short ones, or with that of the current one alone."""
    for names, close in ((_whole, False), (_short, False), (_short, True)):
        made = tuple(_tab(spec, current, names(spec), close=close) for spec in panes)
        if sum(piece.width for piece in made) <= width:
            return made
    return cut((_tab(spec, current, spec.title if spec.id == current else "") for spec in panes), width)


def _whole(spec: PaneSpec) -> str:
    return spec.title


def _short(spec: PaneSpec) -> str:
    return spec.title.partition(" and ")[0]


def _tab(spec: PaneSpec, current: str, name: str, *, close: bool = False) -> Piece:
    """``close``: one blank between two of them, in place of two."""
    end = "" if close and spec.id != current else " "
    text = f" {spec.digit} {name}{end}" if name else f" {spec.digit} "
    return Piece(text, "pill" if spec.id == current else "dim", f"app.run('pane.{spec.id}')")


def footer(
    offers: Iterable[Offer], width: int, hint: tuple[str, str, str] = ("", "", "")
) -> tuple[Piece, ...]:
    """The keys of this moment, most useful first to stay; help, palette and quit always at the right.

    ``hint`` is what Enter or Escape does: key, word, action.
    """
    offers = [offer for offer in offers if offer.footer]
    corner = [offer for offer in offers if offer.action.id in CORNER]
    corner.sort(key=lambda offer: CORNER.index(offer.action.id))
    right = fit([_key(offer) for offer in corner], width - 2)
    rest = sorted(
        (offer for offer in offers if offer.action.id not in CORNER), key=lambda offer: -offer.footer
    )
    room = width - 4 - sum(piece.width for piece in right)
    keys = [_key(offer) for offer in rest]
    if hint[0]:
        key, word, do = hint
        keys.insert(0, Group((Piece(key, "accent", do), Piece(" ", do=do), Piece(word, "dim", do)), 70))
    left = fit(keys, room) if room > 0 else ()
    return spread((Piece(" "), *left), (*right, Piece(" ")), width)


def _key(offer: Offer) -> Group:
    do = f"app.run('{offer.action.id}')"
    first = key_name(offer.keys.split(",")[0])
    tones = ("faint", "faint") if offer.reason else ("accent", "dim")
    return Group(
        (Piece(first, tones[0], do), Piece(" ", do=do), Piece(offer.label, tones[1], do)), offer.footer
    )


def tiny(width: int, height: int) -> bool:
    """Whether a terminal is below the floor."""
    return width < FLOOR[0] or height < FLOOR[1]


def too_small(width: int, height: int, cli: str, asked: str = "") -> str:
    """All that a terminal below the floor shows: what is so, and what to do; ``asked`` is a question."""
    # Not every pane's line is a relaydesk's, and the status is there without a service, too.
    line = cli if cli.startswith("relaydesk ") else "relaydesk status"
    need = f"{FLOOR[0]}x{FLOOR[1]}"
    return asked or f"Terminal too small ({width}x{height}, needs {need}): enlarge it, or run `{line}`."

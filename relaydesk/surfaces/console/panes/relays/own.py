"""This node's own card: who it is in the network, what it relays, and whom it believes."""

from __future__ import annotations

from typing import Final

from relaydesk.core.view.amounts import plural, size
from relaydesk.core.view.network import DirectoryView, NetworkView, RelayingView
from relaydesk.surfaces.console.panes.keys.present import age, day_time, until
from relaydesk.surfaces.console.panes.prose import NOTHING, fact, marked, paragraph, path_fact, sentence
from relaydesk.surfaces.console.panes.relays.head import SOON_MS, behind
from relaydesk.surfaces.console.widgets.gauge import gauge
from relaydesk.surfaces.console.widgets.spans import Line, Span

_ROOM: Final = 11
_GAUGE: Final = 24
# From this share of a limit on it is worth a look.
_MUCH: Final = 0.8
_GB: Final = 1e9


def lines(network: NetworkView, now_ms: int, width: int, *, ascii: bool = False) -> tuple[Line, ...]:
    """Everything of this node."""
    made: list[Line] = [*_standing(network, width), NOTHING]
    ref = f"{network.operator}:{network.node}" if network.operator else "no owner's certificate yet"
    made += fact("node", ref, width, "strong", room=_ROOM)
    made += path_fact("address", network.public_url or "none: RELAY_PUBLIC_URL", width, room=_ROOM)
    for each in network.listening:
        made += path_fact("listens on", each, width, room=_ROOM)
    made += _speaks(network, width)
    left = until(network.ephemeral_expires_at_ms, now_ms)
    made += fact("keys", f"for {left} more" if network.ephemeral_expires_at_ms else "", width, room=_ROOM)
    made += fact("owner", network.owner, width, room=_ROOM)
    made += fact("signs as", network.signing, width, room=_ROOM)
    made += [NOTHING, (Span("Relayed for others", "strong"), Span("  since its start", "dim"))]
    made += _relaying(network.relaying, width, ascii=ascii)
    made += [NOTHING, (Span("Directories", "strong"),)]
    if not network.directories:
        made += marked("warn", "None is pinned: set RELAY_DIRECTORIES.", width)
    for directory in network.directories:
        made += _directory(directory, now_ms, width)
    return (*made, NOTHING, *fact("shell", "relaydesk operators list", width, "dim", room=_ROOM))


def _standing(network: NetworkView, width: int) -> tuple[Line, ...]:
    made: list[Line] = []
    if network.problem:
        made += marked("error", sentence(network.problem), width)
    if network.unpublished:
        made += marked("warn", f"Not published: {sentence(network.unpublished)}", width)
    elif not network.problem:
        made += marked("ok", "A directory lists this node: others find it.", width)
    if network.lab:
        said = "Private addresses are allowed, as in a lab: nobody else must reach this node."
        made += marked("warn", said, width)
    return tuple(made)


def _speaks(network: NetworkView, width: int) -> tuple[Line, ...]:
    if not behind(network):
        newest = f", {network.newest_version} is the newest seen" if network.newest_version else ""
        return fact("speaks", f"protocol {network.proto_version}{newest}", width, room=_ROOM)
    said = f"protocol {network.proto_version}; {network.newest_version} is about: look for a newer relaydesk"
    return fact("speaks", said, width, "warn", room=_ROOM)


def _relaying(relaying: RelayingView, width: int, *, ascii: bool) -> tuple[Line, ...]:
    made: list[Line] = [
        *_gauge(
            "circuits",
            relaying.open,
            relaying.limit,
            f"{relaying.open} of {relaying.limit}",
            width,
            ascii=ascii,
        )
    ]
    for label, value in (
        ("forwarded", relaying.forwarded),
        ("refused", relaying.refused),
        ("failed", relaying.failed),
    ):
        made += fact(label, str(value), width, room=_ROOM)
    limit = relaying.month_limit_bytes
    if limit:
        used = f"{relaying.month_bytes / _GB:.1f} of {limit / _GB:.0f} GB"
        return (*made, *_gauge("month", relaying.month_bytes, limit, used, width, ascii=ascii))
    return (*made, *fact("month", f"{size(relaying.month_bytes)}, no limit", width, room=_ROOM))


def _gauge(label: str, value: int, limit: int, text: str, width: int, *, ascii: bool) -> tuple[Line, ...]:
    head, *more = fact(label, text, width, room=_ROOM)
    room = min(_GAUGE, width - _ROOM - len(text) - 2)
    if more or room < 4 or not limit:
        return (head, *more)
    tone = "accent" if value < _MUCH * limit else "warn"
    return ((*head, Span("  "), *gauge(value / limit, room, tone=tone, ascii=ascii, percent=False)),)


def _directory(directory: DirectoryView, now_ms: int, width: int) -> tuple[Line, ...]:
    tone = "warn" if directory.problem else "ok" if directory.version else "info"
    made: list[Line] = [*marked(tone, directory.source, width)]
    if directory.problem:
        problem = directory.problem[:1].upper() + directory.problem[1:]
        made += paragraph(sentence(problem), width, "warn", indent=2)
    if not directory.version:
        made += paragraph("Nothing of it was seen yet.", width, "dim", indent=2)
    else:
        said = f"Version {directory.version}, {plural(directory.nodes, 'node')}, looked at "
        seen = age(directory.checked_at_ms, now_ms)
        made += paragraph(f"{said}{seen}{'' if seen in ('–', 'just now') else ' ago'}.", width, indent=2)
        left = directory.expires_at_ms - now_ms
        expires = f"Expires in {until(directory.expires_at_ms, now_ms)}" if left > 0 else "Expired"
        toned = "" if left > SOON_MS else "warn" if left > 0 else "error"
        made += paragraph(f"{expires}, {day_time(directory.expires_at_ms)}.", width, toned, indent=2)
    return (*made, *paragraph(directory.address, width, "dim", indent=2))

"""This node in the network, in as many lines as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from relaydesk.core.view.amounts import count, plural, size
from relaydesk.core.view.network import DirectoryView, NetworkView, RelayingView, RelaysView
from relaydesk.surfaces.console.panes.keys.present import until
from relaydesk.surfaces.console.panes.prose import marked, sentence
from relaydesk.surfaces.console.panes.refs import short_ref
from relaydesk.surfaces.console.panes.relays import present
from relaydesk.surfaces.console.pieces import Group, Piece, fit, mark
from relaydesk.surfaces.console.states import clock_time
from relaydesk.surfaces.console.widgets.cells import wrap
from relaydesk.surfaces.console.widgets.spans import Line, Span

# A directory that expires within this is worth a look: it lives for a day, and is signed anew at half of it.
SOON_MS: Final = 6 * 3_600_000
# From this share of a limit on it is worth a look.
_MUCH: Final = 0.8
# Below this width the id of this node is shown by its ends; its card has the whole.
_WIDE: Final = 100
_GB: Final = 1e9


class _Block(NamedTuple):
    """Lines, and how much they are worth where not all have room."""

    worth: int
    lines: tuple[Line, ...]


def lines(
    network: NetworkView | None, relays: RelaysView, now_ms: int, width: int, most: int
) -> tuple[Line, ...]:
    """At most ``most`` lines: who this node is and what is wrong first, then what it relays and the rest."""
    if network is None:
        return marked("warn", "What this node itself does in the network is not known.", width)[:most]
    blocks = [
        _Block(100, (_line(_identity(network, width), width),)),
        *(_Block(90, block) for block in _problems(network, width)),
        _Block(70, (_line(_relaying(network, now_ms), width),)),
        _Block(60, (_line(_others(relays), width),)),
        *(
            _Block(80 if each.problem else 50, (_line(_directory(each, now_ms), width),))
            for each in network.directories
        ),
    ]
    return _fitting(blocks, most)


def _fitting(blocks: Sequence[_Block], most: int) -> tuple[Line, ...]:
    """The blocks worth most, in their own order; one that is too long is left out whole."""
    kept: set[int] = set()
    left = most
    for at in sorted(range(len(blocks)), key=lambda at: (-blocks[at].worth, at)):
        if len(blocks[at].lines) <= left:
            kept.add(at)
            left -= len(blocks[at].lines)
    return tuple(line for at in sorted(kept) for line in blocks[at].lines)


def standing(network: NetworkView) -> tuple[str, str]:
    """The tone and the word of this node's place in the network."""
    if network.problem:
        return "error", "not up"
    return ("warn", "not published") if network.unpublished else ("ok", "published")


def _identity(network: NetworkView, width: int) -> list[Group]:
    tone, word = standing(network)
    ref = f"{network.operator}:{network.node}" if network.operator else "nobody yet"
    shown = ref if width >= _WIDE else short_ref(ref)
    groups = [Group((mark(tone, word),), 100), _pair("as", shown, 90)]
    if behind(network):
        said = mark("warn", f"protocol {network.proto_version}, newest {network.newest_version}")
        groups.append(Group((said,), 85))
    else:
        groups.append(_pair("protocol", network.proto_version, 60))
    if network.lab:
        groups.append(Group((mark("warn", "lab: private addresses allowed"),), 75))
    if network.public_url:
        groups.append(Group((Piece(present.host(network.public_url), "accent"),), 70))
    return groups


def behind(network: NetworkView) -> bool:
    """Whether somebody speaks a newer version of the protocol."""
    return _version(network.newest_version) > _version(network.proto_version)


def _version(text: str) -> tuple[int, ...]:
    parts = text.split(".")
    return tuple(int(part) for part in parts) if all(_number(part) for part in parts) else ()


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _problems(network: NetworkView, width: int) -> list[tuple[Line, ...]]:
    found: list[tuple[Line, ...]] = []
    if network.problem:
        found.append(_short("error", network.problem, width))
    if network.unpublished:
        found.append(_short("warn", f"Not published: {network.unpublished}", width))
    if not network.directories:
        found.append(_short("warn", "No directory is pinned: set RELAY_DIRECTORIES to know others.", width))
    return found


def _short(tone: str, text: str, width: int) -> tuple[Line, ...]:
    """A sentence in two lines at most: the card of this node has all of it."""
    said = marked(tone, sentence(text), width)
    if len(said) <= 2:
        return said
    rest = " ".join("".join(span.text for span in line).strip() for line in said[1:])
    return (said[0], (Span("  "), Span(wrap(rest, max(1, width - 3))[0] + "…", tone)))


def _relaying(network: NetworkView, now_ms: int) -> list[Group]:
    relaying, expires = network.relaying, network.ephemeral_expires_at_ms
    full = relaying.limit and relaying.open >= _MUCH * relaying.limit
    circuits = f"{relaying.open}/{relaying.limit}"
    return [
        Group((Piece("circuits ", "dim"), Piece(circuits, "warn" if full else "")), 90),
        _pair("forwarded", count(relaying.forwarded), 80),
        _pair("refused", count(relaying.refused), 60),
        _pair("failed", count(relaying.failed), 70),
        _month(relaying),
        *([_pair("keys for", until(expires, now_ms), 20)] if expires else []),
    ]


def _month(relaying: RelayingView) -> Group:
    """What was relayed this month; in GB, as its limit is set."""
    used, limit = relaying.month_bytes, relaying.month_limit_bytes
    if not limit:
        return _pair("month", size(used), 65)
    text = f"{used / _GB:.0f} of {limit / _GB:.0f} GB"
    shown = mark("warn", text) if used >= _MUCH * limit else Piece(text)
    return Group((Piece("month ", "dim"), shown), 65)


def _others(relays: RelaysView) -> list[Group]:
    found = present.counts(relays)
    groups = [Group((Piece(plural(found["all"], "relay"), "strong"),), 90)]
    groups += [
        Group((mark(tone, f"{found[tier]} {tier}"),), worth)
        for tier, tone, worth in (("reachable", "ok", 80), ("cold", "info", 70), ("demoted", "warn", 75))
        if found[tier]
    ]
    few = sum(present.few(each) for each in relays.relays)
    if few:
        groups.append(Group((mark("warn", f"{few} with VIA 0 or 1"),), 72))
    unused = len(relays.relays) - found["all"] - sum(each.standing == "self" for each in relays.relays)
    if unused:
        groups.append(Group((mark("dim", f"{unused} not used"),), 50))
    if relays.next_probe_at_ms:
        groups.append(_pair("next probe", clock_time(relays.next_probe_at_ms), 40))
    return groups


def _directory(directory: DirectoryView, now_ms: int) -> list[Group]:
    # A file by its name: its card has the whole path.
    source = present.host(directory.source).rpartition("/")[2] or directory.source
    if directory.problem:
        said = mark("warn", f"{source}: {directory.problem}")
        return [Group((said,), 90), *([_expiry(directory, now_ms)] if directory.version else [])]
    tone = "ok" if directory.version else "info"
    groups = [Group((Piece("directory ", "dim"), mark(tone, source)), 90)]
    if not directory.version:
        return [*groups, Group((Piece("not seen yet", "info"),), 80)]
    return [
        *groups,
        _pair("version", str(directory.version), 50),
        Group((Piece(plural(directory.nodes, "node"), ""),), 60),
        _expiry(directory, now_ms),
    ]


def _expiry(directory: DirectoryView, now_ms: int) -> Group:
    left = directory.expires_at_ms - now_ms
    if left <= 0:
        return Group((mark("error", "expired"),), 80)
    text = f"expires in {until(directory.expires_at_ms, now_ms)}"
    return Group((mark("warn", text) if left < SOON_MS else Piece(text),), 70)


def _pair(name: str, value: str, worth: int) -> Group:
    return Group((Piece(f"{name} ", "dim"), Piece(value)), worth)


def _line(groups: Sequence[Group], width: int) -> Line:
    return tuple(Span(piece.text, piece.tone) for piece in fit(groups, width))

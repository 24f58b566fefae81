"""Nodes of the network as rows: how each does as a relay, and through how many it is reached."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from relaydesk.core.view.amounts import millis, plural
from relaydesk.core.view.network import EvidenceView, NetworkView, RelaysView, RelayView
from relaydesk.surfaces.console.panes.keys.present import until
from relaydesk.surfaces.console.panes.prose import marked
from relaydesk.surfaces.console.panes.refs import short_ref
from relaydesk.surfaces.console.pieces import MARKS
from relaydesk.surfaces.console.states import Notice
from relaydesk.surfaces.console.widgets.chart import round_top
from relaydesk.surfaces.console.widgets.columns import Column
from relaydesk.surfaces.console.widgets.rows import BLANK, Cell, Row
from relaydesk.surfaces.console.widgets.spans import Line
from relaydesk.surfaces.console.widgets.spark import sparkline

TREND: Final = 8
COLUMNS: Final = (
    Column("node", "NODE", width=11),
    Column("state", "AS A RELAY", width=11),
    Column("rtt", "RTT", width=7, min_width=6, align="right", priority=2),
    Column("trend", "TREND", width=TREND, priority=4, descending=True),
    Column("faults", "FAULTS", width=6, align="right", priority=1, descending=True),
    Column("share", "SHARE", width=6, align="right", priority=5, descending=True),
    Column("via", "VIA", width=3, align="right", priority=2),
    Column("why", "WHY", width=20, min_width=15, fill=2, priority=3),
    Column("wire", "WIRE", width=5, priority=6),
    Column("models", "MODELS", width=6, align="right", priority=7, descending=True),
    Column("address", "ADDRESS", width=20, min_width=14, fill=1, priority=8),
    Column("ref", "WHOLE ID", width=22, priority=9),
)
OFF: Final = Notice(
    "This node takes no part in the relay network.",
    "set RELAY_NETWORK=on and RELAY_DIRECTORIES, then restart the node",
)
# Through this many relays or fewer, one that fails or looks on is soon the only one.
FEW: Final = 1
_CODES: Final = {
    "relay_upstream_unreachable": "no target",
    "provider_unavailable": "no provider",
    "provider_overloaded": "overloaded",
    "node_draining": "draining",
    "node_ephemeral_unavailable": "no keys",
    "no_fresh_ephemeral": "no fresh keys",
    "context_length_exceeded": "too long",
    "free_quota_exhausted": "quota used up",
    "unsupported_model": "no such model",
    "ticket_required": "no ticket",
}
# A round trip below this is drawn low, however much it varies.
_LEAST_PEAK_MS: Final = 200.0


class State(NamedTuple):
    """What a node is to this one, as a word behind a symbol."""

    mark: str
    tone: str
    word: str

    @property
    def text(self) -> str:
        """Both."""
        return f"{self.mark} {self.word}"


_TIERS: Final = {
    "reachable": State(MARKS["ok"], "ok", "reachable"),
    "cold": State(MARKS["info"], "info", "cold"),
    "demoted": State(MARKS["warn"], "warn", "demoted"),
}
_STANDINGS: Final = {
    "self": State("▸", "accent", "this node"),
    "unknown": State(MARKS["dim"], "dim", "unknown"),
    "disabled": State(MARKS["dim"], "dim", "disabled"),
    "blocked": State(MARKS["error"], "dim", "blocked"),
}


def rows(
    relays: RelaysView,
    network: NetworkView | None,
    now_ms: int,
    *,
    trouble: bool = False,
    ascii: bool = False,
) -> tuple[Row, ...]:
    """This node first, then the others by their references; ``trouble`` leaves what wants a look."""
    newest = network.newest_version if network is not None else ""
    ours = network.proto_version if network is not None else ""
    shown = [each for each in everybody(relays, network) if not trouble or wants_a_look(each)]
    return tuple(
        _row(each, _left(each, now_ms), ours if each.standing == "self" else "", newest, ascii=ascii)
        for each in shown
    )


def everybody(relays: RelaysView, network: NetworkView | None) -> tuple[RelayView, ...]:
    """Every node of the network with this one at the head, listed or not."""
    others = tuple(each for each in relays.relays if each.standing != "self")
    if network is None or not network.on:
        return relays.relays
    own = RelayView(
        ref=f"{network.operator}:{network.node}" if network.operator else "this node",
        owner=network.owner,
        base_url=network.public_url,
        standing="self",
        why=network.problem or network.unpublished,
    )
    return (own, *others)


def find(relays: RelaysView, network: NetworkView | None, ref: str) -> RelayView | None:
    """The node of a row."""
    return next((each for each in everybody(relays, network) if each.ref == ref), None)


def state(relay: RelayView) -> State:
    """Its tier where it may be chosen, else why it may not."""
    return _TIERS[relay.tier] if relay.standing == "eligible" else _STANDINGS[relay.standing]


def wants_a_look(relay: RelayView) -> bool:
    """Whether anything speaks against a node, or too few relays reach it."""
    if relay.standing != "eligible":
        return bool(relay.why) or relay.standing != "self"
    return bool(relay.tier == "demoted" or relay.faults or relay.stale or relay.why or few(relay))


def few(relay: RelayView) -> bool:
    """Whether a target is in danger: no relay reaches it, or one sees all that is asked of it."""
    return relay.standing == "eligible" and relay.eligible_relays <= FEW


def counts(relays: RelaysView) -> dict[str, int]:
    """How many nodes there are of each tier, and in ``all`` how many may be chosen."""
    found = {"all": 0, "reachable": 0, "cold": 0, "demoted": 0}
    for each in relays.relays:
        if each.standing == "eligible":
            found["all"] += 1
            found[each.tier] += 1
    return found


def sign(left_out: int, width: int) -> tuple[Line, ...]:
    """That only some nodes are listed, and what shows the rest again."""
    return marked(
        "warn", f"Only what wants a look, {plural(left_out, 'node')} left out: esc shows all.", width
    )


def answer(status: int, code: str, *, marker: bool) -> str:
    """What came back, in a few words: ``502 unmarked``, ``503 relay_busy``."""
    if not status:
        return "no answer"
    return f"{status} {code}" if code else f"{status}{'' if marker else ' unmarked'}"


def told(seen: EvidenceView) -> str:
    """One outcome in the width that a list has."""
    return f"{seen.status} {short_code(seen.code)}".rstrip() if seen.status else "no answer"


def short_code(code: str) -> str:
    """A wire's code as words in the width that a list has; the detail has the code itself."""
    return _CODES.get(code, code.removeprefix("relay_").replace("_", " "))


def _left(relay: RelayView, now_ms: int) -> str:
    """How long it stays demoted, in one unit; empty where it is not."""
    if relay.standing != "eligible" or relay.tier != "demoted":
        return ""
    return until(relay.demoted_until_ms, now_ms)


# Most nodes stand as they did a second ago.
@lru_cache(maxsize=4096)
def _row(relay: RelayView, left: str, ours: str, newest: str, *, ascii: bool) -> Row:
    found = state(relay)
    chosen = relay.standing == "eligible"
    wire = relay.proto_version or ours
    return Row(
        relay.ref,
        (
            Cell(short_ref(relay.ref), "strong" if chosen or relay.standing == "self" else "dim"),
            Cell(found.text, found.tone, found.word),
            Cell(millis(relay.rtt_ms), "", relay.rtt_ms) if relay.rtt_ms is not None else BLANK,
            _trend(relay, ascii=ascii),
            _faults(relay) if chosen else BLANK,
            Cell(share(relay.share), "" if relay.share else "dim", relay.share) if chosen else BLANK,
            _via(relay) if chosen else BLANK,
            Cell(_why(relay, left), found.tone if found.tone in ("warn", "dim") else ""),
            Cell(wire, "warn" if ours and ours != newest else "dim"),
            Cell(str(len(relay.models)), "", len(relay.models)) if relay.models else BLANK,
            Cell(host(relay.base_url), "dim"),
            Cell(relay.ref, "dim"),
        ),
    )


def share(value: float) -> str:
    """A share of the draw in few cells."""
    return f"{value * 100:.1f} %" if value else "0 %"


def host(url: str) -> str:
    """The host of an address, the whole where it has none."""
    try:
        return urlsplit(url).netloc or url
    except ValueError:
        return url


def _trend(relay: RelayView, *, ascii: bool) -> Cell:
    history = relay.history[-TREND:]
    if not history:
        return BLANK
    peak = max(_LEAST_PEAK_MS, round_top(max(history)))
    return Cell(sparkline(history, TREND, ascii=ascii, peak=peak), "dim", max(history))


def _faults(relay: RelayView) -> Cell:
    text = f"{relay.faults}/{relay.fault_limit}"
    if relay.stale > relay.faults:
        text = f"{relay.stale}/{relay.fault_limit}"
    most = max(relay.faults, relay.stale)
    return Cell(text, "dim" if not most else "error" if most >= relay.fault_limit else "warn", most)


def _via(relay: RelayView) -> Cell:
    value = relay.eligible_relays
    if value > FEW:
        return Cell(str(value), "", value)
    tone = "error" if value == 0 else "warn"
    return Cell(f"{MARKS[tone]} {value}", tone, value)


def _why(relay: RelayView, left: str) -> str:
    if left:
        return f"{left}: {told(relay.evidence[-1]) if relay.evidence else 'demoted'}"
    if relay.why:
        return relay.why
    return f"was {told(relay.evidence[-1])}" if relay.evidence and (relay.faults or relay.stale) else ""

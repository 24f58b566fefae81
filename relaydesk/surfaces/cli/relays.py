"""``relaydesk relays``: the nodes of the relay network as this one sees them, and probing them now."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from relaydesk.core.commands import ProbeRelays
from relaydesk.core.errors import PeerError
from relaydesk.core.view.network import Charged, HopView, NetworkView, RelaysView, RelayView
from relaydesk.core.view.presence import nobody
from relaydesk.core.view.sections import Section
from relaydesk.surfaces.cli.attach import Node, answer, attach_option, find_node, json_option, read
from relaydesk.surfaces.cli.lazy import LazyGroup
from relaydesk.surfaces.cli.names import Named, named_by, names_of
from relaydesk.surfaces.cli.output import (
    Tone,
    ago,
    mark,
    millis,
    paint,
    print_json,
    say,
    table,
    tell,
    wrap,
)
from relaydesk.surfaces.cli.verbs import verb
from relaydesk.surfaces.control.routes import VIEWS

_TONE: Final[dict[str, Tone]] = {
    "reachable": "good",
    "cold": "dim",
    "demoted": "bad",
    "self": "plain",
    "unknown": "dim",
    "blocked": "bad",
    "disabled": "bad",
}
_CHARGED_TONE: Final[dict[Charged, Tone]] = {"relay": "bad", "target": "warn", "nobody": "plain"}
# Through this many relays or fewer, one that fails or looks on is soon the only one (design §6).
_FEW: Final = 1
# Every node of a directory is asked, some of them only after they let a time-out pass.
_PROBE_S: Final = 600.0
_HEAD: Final = (
    "NODE",
    "NAME",
    "AS A RELAY",
    "RTT",
    "SHARE",
    "FAULTS",
    "WIRE",
    "REACHED BY",
    "MODELS",
    "ADDRESS",
)


class _Probes(msgspec.Struct, frozen=True):
    """What a node says of the probes it made."""

    probes: tuple[HopView, ...] = ()


@click.group(cls=LazyGroup, verbs=verb("relays").below, invoke_without_command=True)
@json_option
@attach_option
@click.pass_context
def relays(ctx: click.Context, as_json: bool, attach: Path | None) -> None:
    """The nodes of the relay network: how each does as a relay, and through how many each is reached."""
    if ctx.invoked_subcommand is not None:
        ctx.obj = attach
        return
    node = find_node(attach)
    found = _view(node)
    if as_json:
        print_json(found)
        return
    if not found.relays:
        _tell_why(node)
        return
    for line in table(_HEAD, [_row(each) for each in found.relays], indent="", shrink=(9, 8, 1), left=(9,)):
        say(line)
    for line in _remarks(found):
        say(line)


@click.command()
@click.argument("ref", required=False, default="", metavar="[OPERATOR:NODE]")
@json_option
@attach_option
@click.pass_context
def probe(ctx: click.Context, ref: str, as_json: bool, attach: Path | None) -> None:
    """Ask every node, or the one named, through relays how it does; what that says of relays counts."""
    node = find_node(attach or (ctx.obj if isinstance(ctx.obj, Path) else None))
    value = node.call(ProbeRelays(ref=ref), timeout=_PROBE_S).value
    found = answer(value, _Probes).probes
    if as_json:
        print_json(value)
        return
    if not found:
        tell("Nobody could be probed: there is no other node of the network, or no relay to ask it through.")
        return
    head = ("TARGET", "RELAY", "HTTP", "CODE", "MARKER", "TIME", "CHARGED", "WHY")
    named = names_of(node)
    for line in table(head, [_hop(each, named) for each in found], indent="", shrink=(7, 3)):
        say(line)


def _tell_why(node: Node) -> None:
    """Why nobody is known, and the next step."""
    section = read(node.get(f"{VIEWS}/network"), Section[NetworkView])
    if section.value is None:
        tell("No node of the relay network is known: this one is still starting.")
        return
    why = nobody(section.value)
    tell(f"{why.message[0].upper()}{why.message[1:].rstrip('.')}.")
    if why.hint:
        tell(f"Next: {why.hint}.")


def _view(node: Node) -> RelaysView:
    section = read(node.get(f"{VIEWS}/relays"), Section[RelaysView])
    if section.value is None:
        reason = section.fault.message if section.fault else "it is still starting"
        raise PeerError("internal_error", f"the node cannot list its relays ({reason})", "try again")
    return section.value


def _row(row: RelayView) -> tuple[str, ...]:
    relaying = row.standing == "eligible"
    state: str = row.tier if relaying else row.standing
    tone = _TONE[state]
    counts = f"{row.faults}/{row.fault_limit}" + (f" +{row.stale} stale" if row.stale else "")
    return (
        row.ref,
        row.name or "–",
        f"{mark(tone) if tone != 'plain' else ' '} {paint(state, tone)}",
        millis(row.rtt_ms),
        f"{row.share:.0%}" if relaying else "–",
        counts if relaying else "–",
        row.proto_version or "–",
        f"{row.eligible_relays} relay{'' if row.eligible_relays == 1 else 's'}" if relaying else "–",
        ", ".join(row.models) or "–",
        row.base_url,
    )


def _remarks(found: RelaysView) -> list[str]:
    """What the table has no room for: why a relay is passed over, and who is reached through too few."""
    lines: list[str] = []
    named = named_by(found.relays)
    for row in found.relays:
        who = named(row.ref)
        if row.tier == "demoted" and row.explanation:
            lines += wrap(f"{who}: {row.explanation}", "  ", f"{mark('bad')} ")
        elif row.why:
            lines += wrap(f"{who}: {row.why}", "  ", f"{mark('dim')} ")
        if row.standing == "eligible" and row.eligible_relays <= _FEW:
            through = "no relay" if row.eligible_relays == 0 else "one relay only"
            lines += wrap(f"{who} can be reached through {through}", "  ", f"{mark('warn')} ")
    if found.probed_at_ms:
        since = ago(time.time() - found.probed_at_ms / 1000)
        lines.append(paint(f"last probed {since} ago; `relaydesk relays probe` does it now", "dim"))
    return lines


def _hop(hop: HopView, named: Named) -> tuple[Any, ...]:
    tone = _CHARGED_TONE[hop.charged]
    return (
        named(hop.target),
        named(hop.relay) or "–",
        str(hop.status or "–"),
        hop.code or "–",
        "yes" if hop.marker else "no",
        millis(hop.duration_ms),
        paint(hop.charged, tone),
        hop.why,
    )

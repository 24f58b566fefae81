"""``relaydesk check-hop``: find what in front of a node takes its marker away, on any machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from relaydesk.core.commands import LookFromOutside, PrepareHopCheck
from relaydesk.core.errors import FaultError, LocalError
from relaydesk.core.text import SafeText
from relaydesk.core.view.hopcheck import LayerKind
from relaydesk.surfaces.cli.attach import Node, answer, attach_option, find_node, json_option
from relaydesk.surfaces.cli.output import Tone, mark, note, paint, print_json, say, tell, wrap

if TYPE_CHECKING:
    from relaydesk.core.hopcheck.model import Exchange, Finding, Layer, Observation, Report
    from relaydesk.core.hopcheck.probes import Probe
    from relaydesk.engine.hopcheck.run import Plan

_TONE: Final[dict[str, Tone]] = {"error": "bad", "warning": "warn", "info": "dim"}
_STATE: Final[dict[str, tuple[Tone, str]]] = {
    "passed": ("good", "passed"),
    "failed": ("bad", "failed"),
    "not_tested": ("dim", "not tested"),
}
_PEERS_S: Final = 15.0


class _Door(msgspec.Struct, frozen=True):
    name: str
    url: SafeText
    kind: LayerKind


class _Prepared(msgspec.Struct, frozen=True):
    """What a node gives to a check."""

    nonce: str
    expires_at_ms: int
    url: str = ""
    layers: tuple[_Door, ...] = ()
    target: str = ""
    lab: bool = False


class _Seen(msgspec.Struct, frozen=True):
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    kind: str = ""
    problem: str = ""


@click.command("check-hop")
@click.argument("url", required=False, default="", metavar="[URL]")
@click.option(
    "--via",
    multiple=True,
    metavar="LAYER=URL",
    help="A layer between node and URL, from the inside outwards, such as nginx=http://127.0.0.1:8080.",
)
@click.option("--long", "long", is_flag=True, help="Try silences of 20, 65 and 125 s too.")
@click.option("--nonce", default="", metavar="NONCE", help="A nonce of the node, made by --new-nonce there.")
@click.option("--new-nonce", is_flag=True, help="Make a nonce and print the command to run elsewhere.")
@click.option("--alone", is_flag=True, help="Do not look for a node on this machine.")
@click.option(
    "--silence",
    "silences",
    multiple=True,
    type=click.FloatRange(0.1, 130),
    metavar="SECONDS",
    help="Try this silence with --long, instead of the usual ones.",
)
@json_option
@attach_option
def check_hop(
    url: str,
    via: tuple[str, ...],
    long: bool,
    nonce: str,
    new_nonce: bool,
    alone: bool,
    silences: tuple[float, ...],
    as_json: bool,
    attach: Path | None,
) -> None:
    """Find what in front of a node takes its marker away, and what to change there.

    URL is where the world reaches the node; with a node on this machine, usually the one it advertises.
    Nothing else is asked, and no redirect is followed. Exit code 1 where a finding stands.
    """
    if new_nonce:
        _print_nonce(find_node(attach), url, as_json)
        return
    node = None if alone or nonce else _local(attach)
    prepared = _prepared(node)
    report = _check(url, via, long, silences or None, nonce, node, prepared)
    if as_json:
        from relaydesk.core.hopcheck.report import document

        print_json(document(report))
    else:
        _print(report)
    if not report.ok:
        raise click.exceptions.Exit(1)


def _print_nonce(node: Node, url: str, as_json: bool) -> None:
    prepared = answer(node.call(PrepareHopCheck()).value, _Prepared)
    if as_json:
        print_json({"nonce": prepared.nonce, "expires_at_ms": prepared.expires_at_ms, "url": prepared.url})
        return
    where = url or prepared.url or "URL"
    tell("For five minutes, on a machine elsewhere:")
    say(f"relaydesk check-hop {where} --nonce {prepared.nonce}")


def _local(attach: Path | None) -> Node | None:
    """The node of this machine, where there is one; one that was named has to be there."""
    try:
        return find_node(attach)
    except FaultError as error:
        if attach is not None:
            raise
        if error.fault.code != "no_node":
            note(f"the node of this machine is left out: {error.fault.message}")
        return None


def _prepared(node: Node | None) -> _Prepared | None:
    if node is None:
        return None
    try:
        return answer(node.call(PrepareHopCheck()).value, _Prepared)
    except FaultError as error:
        note(f"the node of this machine does not help: {error.fault.message}")
        return None


def _check(
    url: str,
    via: Sequence[str],
    long: bool,
    silences: tuple[float, ...] | None,
    nonce: str,
    node: Node | None,
    prepared: _Prepared | None,
) -> Report:
    import asyncio

    from relaydesk.core.hopcheck.asked import is_nonce
    from relaydesk.engine.hopcheck.run import check

    if nonce and not is_nonce(nonce):
        raise LocalError("invalid_request", "this is no nonce", "make one with `check-hop --new-nonce`")
    advertised = prepared.url if prepared is not None else ""
    if not url and not advertised:
        raise LocalError(
            "invalid_request", "no URL is given and no node here advertises one", "give the public URL"
        )
    plan = _plan(url or advertised, via, long, silences, nonce, node, prepared)
    return asyncio.run(check(plan, _Progress()))


def _plan(
    url: str,
    via: Sequence[str],
    long: bool,
    silences: tuple[float, ...] | None,
    nonce: str,
    node: Node | None,
    prepared: _Prepared | None,
) -> Plan:
    from relaydesk.core.hopcheck.model import Layer
    from relaydesk.core.hopcheck.probes import BODY_S, LONG_BODY_S, SILENCES
    from relaydesk.engine.clock import SystemClock
    from relaydesk.engine.hopcheck.door import trusts
    from relaydesk.engine.hopcheck.layers import chain
    from relaydesk.engine.hopcheck.run import Plan
    from relaydesk.engine.hopcheck.sends import Tools
    from relaydesk.engine.relay.commands import parse_ref
    from relaydesk.engine.tls.addresses import this_machine
    from relaydesk.surfaces.cli.settings import load_settings

    doors: tuple[_Door, ...] = prepared.layers if prepared is not None else ()
    layers = chain([Layer(each.name, str(each.url), each.kind) for each in doors], via, url)
    settings = load_settings().settings
    tools = Tools(
        trusts(settings),
        SystemClock(),
        frozenset(str(each) for each in this_machine().addresses),
        prepared.nonce if prepared is not None else nonce,
        parse_ref(prepared.target) if prepared is not None and prepared.target else None,
        LONG_BODY_S if long else BODY_S,
    )
    return Plan(
        layers,
        tools,
        long,
        silences or SILENCES,
        outside=_outside(node, layers[-1].url, prepared),
        from_node=prepared is not None,
        lab=prepared.lab if prepared is not None else settings.allow_private == "on",
    )


def _outside(node: Node | None, url: str, prepared: _Prepared | None) -> Any:
    """What a peer of the node sees, where it advertises this URL."""
    if node is None or prepared is None or url != prepared.url:
        return None

    async def look() -> Exchange | None:
        import asyncio

        from relaydesk.core.hopcheck.dialback import HEADERS
        from relaydesk.core.hopcheck.model import Exchange
        from relaydesk.core.relay.hop import relay_url

        try:
            outcome = await asyncio.to_thread(node.call, LookFromOutside(), _PEERS_S)
        except FaultError:
            return None
        if outcome.value is None:
            return None
        seen = answer(outcome.value, _Seen)
        kind: Any = seen.kind
        return Exchange(
            "POST",
            relay_url(url),
            HEADERS,
            status=seen.status,
            headers=seen.headers,
            kind=kind,
            problem=seen.problem,
        )

    return look


class _Progress:
    """A line of stderr for each probe that is over."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, Observation]] = {}

    def planned(self, layers: Sequence[Layer], probes: Mapping[str, Sequence[Probe]]) -> None:
        self._seen = {layer.name: {} for layer in layers}
        for layer in layers:
            note(f"{layer.name}: {layer.url}, {len(probes[layer.name])} probes")

    def began(self, layer: Layer, probe: str) -> None:
        """Nothing: they are over soon, and the silences say how long they are."""

    def ended(self, layer: Layer, observed: Observation) -> None:
        import sys

        from relaydesk.core.hopcheck.report import probe_view

        seen = self._seen[layer.name]
        seen[observed.probe] = observed
        row = probe_view(layer, observed, seen)
        tone, word = _STATE[row.state]
        said = f": {row.evidence}" if row.evidence else ""
        note(f"{layer.name}: {row.title}: {paint(word, tone, sys.stderr)}{said}")


def _print(report: Report) -> None:
    from relaydesk.core.hopcheck.report import layer_views, summary

    for layer in layer_views(report):
        shown = f" ({layer.product})" if layer.product else ""
        say(f"{layer.name}: {layer.url}{shown}")
    say()
    tone: Tone = "good" if report.ok else _TONE[report.findings[0].severity]
    for line in wrap(summary(report), "  ", f"{mark(tone)} "):
        say(line)
    for finding in report.findings:
        _print_finding(finding)


def _print_finding(finding: Finding) -> None:
    tone = _TONE[finding.severity]
    say()
    for line in wrap(f"{finding.title} [{finding.code}]", "  ", f"{mark(tone)} "):
        say(line)
    say(f"  layer: {finding.layer or 'none'}    product: {finding.product or 'not known'}")
    say("  seen:")
    for line in finding.evidence:
        for part in wrap(line, "      ", "    "):
            say(part)
    for part in wrap(f"effect: {finding.effect}", "    ", "  "):
        say(part)
    say("  remedy:")
    # As it is: configuration in fenced blocks is for copying, and for programs.
    for part in finding.remedy.split("\n"):
        say(part)

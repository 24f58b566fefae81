"""What fronts see of the check of what stands in front of this node: the one that runs, and the last one.

Evidence is lines of an exchange with secrets cut, and comes from strangers' machines; remedies are texts of
our own.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from relaydesk.core.text import SafeText

LayerKind = Literal["loopback", "lan", "via", "public"]
ProbeState = Literal["waiting", "running", "passed", "failed", "not_tested"]
Severity = Literal["error", "warning", "info"]


class LayerView(msgspec.Struct, frozen=True):
    """One place at which the node is reached, from the node itself outwards.

    ``product`` is what answers there, empty where that is not known. ``inside``: the name stands for an
    address of the inside here, so that nobody is blamed for what was seen.
    """

    name: str
    url: SafeText
    kind: LayerKind
    product: str = ""
    inside: bool = False


class ProbeView(msgspec.Struct, frozen=True):
    """One probe at one layer. ``evidence`` is one sentence: what was seen, or why it was not tested."""

    id: str
    layer: str
    title: str
    state: ProbeState = "waiting"
    evidence: SafeText = SafeText("")
    took_ms: int = 0


class FindingView(msgspec.Struct, frozen=True):
    """Something to act on.

    ``layer``: which one does it, empty where none can be blamed. ``evidence``: the exchange, a line each.
    ``effect``: what callers conclude. ``remedy``: lines of text, with configuration in fenced blocks.
    """

    code: str
    severity: Severity
    title: str
    layer: str
    product: str
    evidence: tuple[SafeText, ...]
    effect: str
    remedy: str


class HopReportView(msgspec.Struct, frozen=True):
    """A check that ended. ``ok``: no finding of severity error or warning stands."""

    url: SafeText
    at_ms: int
    took_ms: int
    ok: bool
    long: bool
    summary: str
    layers: tuple[LayerView, ...] = ()
    probes: tuple[ProbeView, ...] = ()
    findings: tuple[FindingView, ...] = ()


class HopScheduleView(msgspec.Struct, frozen=True):
    """The check that runs by itself, of the advertised URL alone. ``interval_s`` 0: it is off.

    ``passing`` is None before its first end; ``why`` says why it cannot run, where it cannot.
    """

    interval_s: float = 0.0
    url: SafeText = SafeText("")
    next_at_ms: int = 0
    last_at_ms: int = 0
    passing: bool | None = None
    why: SafeText = SafeText("")


class HopCheckView(msgspec.Struct, frozen=True):
    """The section ``hopcheck``. While ``running``: ``job`` (to cancel), ``url``, ``layers``, ``probes`` and
    what was found so far. ``report`` is the last check an operator asked for; it stays while another runs.

    ``suggested`` are the layers that the node knows of itself, from loopback to the URL it advertises.
    """

    running: bool = False
    job: str = ""
    url: SafeText = SafeText("")
    long: bool = False
    started_at_ms: int = 0
    layers: tuple[LayerView, ...] = ()
    probes: tuple[ProbeView, ...] = ()
    findings: tuple[FindingView, ...] = ()
    report: HopReportView | None = None
    schedule: HopScheduleView = HopScheduleView()
    suggested: tuple[LayerView, ...] = ()

"""What fronts see of the relay network: this node in it, the relays it may choose, and its recent hops.

Ids are shown as ``operator:node``. Nothing here says who asked what of this node as a relay: of that only
counts are kept (design §6).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from relaydesk.core.text import SafeText

Standing = Literal["eligible", "unknown", "blocked", "disabled", "self"]
Tier = Literal["reachable", "cold", "demoted"]
Charged = Literal["relay", "target", "nobody"]


class DirectoryView(msgspec.Struct, frozen=True):
    """One pinned directory; ``version`` 0: nothing of it was ever seen.

    ``problem`` is empty where all is well.
    """

    address: str
    source: SafeText
    version: int = 0
    issued_at_ms: int = 0
    expires_at_ms: int = 0
    checked_at_ms: int = 0
    nodes: int = 0
    problem: SafeText = SafeText("")


class RelayingView(msgspec.Struct, frozen=True):
    """What this node did as a relay for others, in counts since its start; bytes are of this month (UTC)."""

    open: int = 0
    limit: int = 0
    forwarded: int = 0
    refused: int = 0
    failed: int = 0
    month_bytes: int = 0
    month_limit_bytes: int = 0


class NetworkModelView(msgspec.Struct, frozen=True, gc=False):
    """A model that other nodes offer; hub clients ask for it as ``net/<id>``.

    Rates are the cheapest target's, in microUSDC per 1,000,000 tokens; ``context_window`` is the largest of
    its ``targets``, 0 where none says. ``eligible_relays``: through so many the best reached of them can be
    asked. ``warm``: somebody can be asked now.
    """

    id: SafeText
    input_rate: int = 0
    output_rate: int = 0
    context_window: int = 0
    targets: int = 0
    eligible_relays: int = 0
    warm: bool = False


class NetworkView(msgspec.Struct, frozen=True):
    """This node's place in the network.

    ``problem`` says why the network is not up, ``unpublished`` why no directory lists this node; both are
    empty where all is well. ``lab``: private addresses are allowed. ``newest_version`` is the highest
    ``proto_version`` seen on the network. ``offers`` are models of others, by name, and ``more_offers`` how
    many more there are.
    """

    on: bool = False
    operator: str = ""
    owner: str = ""
    node: int = 0
    signing: str = ""
    public_url: SafeText = SafeText("")
    listening: tuple[str, ...] = ()
    proto_version: str = ""
    newest_version: SafeText = SafeText("")
    problem: SafeText = SafeText("")
    unpublished: SafeText = SafeText("")
    lab: bool = False
    ephemeral_expires_at_ms: int = 0
    directories: tuple[DirectoryView, ...] = ()
    relaying: RelayingView = RelayingView()
    offers: tuple[NetworkModelView, ...] = ()
    more_offers: int = 0


class EvidenceView(msgspec.Struct, frozen=True, gc=False):
    """One outcome that counted for or against a relay."""

    at_ms: int
    target: str
    status: int
    code: SafeText
    marker: bool
    rule: SafeText


class RelayView(msgspec.Struct, frozen=True):
    """A node of the network as this one, asking through it, sees it.

    ``rtt_ms`` is None without fresh samples; ``history`` are the last round trips in ms, oldest first.
    ``faults`` and ``stale`` count towards ``fault_limit``. ``eligible_relays``: through how many relays this
    node can be reached as a target; 0 or 1 is an alert. ``name`` is what a directory calls its operator.
    """

    ref: str
    owner: str
    base_url: SafeText
    standing: Standing
    why: SafeText = SafeText("")
    tier: Tier = "cold"
    proto_version: SafeText = SafeText("")
    version: SafeText = SafeText("")
    rtt_ms: float | None = None
    samples: int = 0
    history: tuple[int, ...] = ()
    share: float = 0.0
    faults: int = 0
    stale: int = 0
    unreachable: int = 0
    fault_limit: int = 3
    demoted_at_ms: int = 0
    demoted_until_ms: int = 0
    explanation: SafeText = SafeText("")
    evidence: tuple[EvidenceView, ...] = ()
    last_ok_at_ms: int = 0
    probed_at_ms: int = 0
    models: tuple[SafeText, ...] = ()
    eligible_relays: int = 0
    name: SafeText = SafeText("")


class RelaysView(msgspec.Struct, frozen=True):
    """Every node a directory lists, and those none admits, in the order of their references."""

    relays: tuple[RelayView, ...] = ()
    probed_at_ms: int = 0
    next_probe_at_ms: int = 0


class HopView(msgspec.Struct, frozen=True, gc=False):
    """One exchange of ours through a relay: what came back, and what was concluded.

    ``status`` 0: no answer at all. ``attribution`` is what classify and narrow made of it, ``charged`` whom
    the reputation was charged to, ``rule`` the row of the table that decided.
    """

    id: str
    at_ms: int
    purpose: Literal["probe", "reserve", "inference", "ledger"]
    relay: str
    target: str
    path: str
    status: int
    code: SafeText
    marker: bool
    retryable: bool
    attribution: Literal["relay", "target", "unknown", "none"]
    charged: Charged
    rule: str
    why: SafeText
    duration_ms: int
    attempt: int = 1


class HopsView(msgspec.Struct, frozen=True):
    """Recent hops, newest first."""

    hops: tuple[HopView, ...] = ()

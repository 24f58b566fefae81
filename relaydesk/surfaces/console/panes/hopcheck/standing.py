"""Where the wizard stands: whether the check can be had at all, which step comes first, what a key may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from relaydesk.core.view.hopcheck import HopCheckView
from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console.data import Link
from relaydesk.surfaces.console.panes.hopcheck.plan import Entry
from relaydesk.surfaces.console.panes.relays.present import OFF
from relaydesk.surfaces.console.pieces import Piece, spread
from relaydesk.surfaces.console.states import Notice, PaneState, pane_state

Step = Literal["layers", "probes", "result"]
# The first for which there is room.
TITLES: Final = ("Check my X-Zs-Relay-Hop passthrough", "X-Zs-Relay-Hop passthrough", "X-Zs-Relay-Hop")
OLD: Final = Notice(
    "This node does not know the check yet: it runs an older relaydesk.",
    "update it and start it again; until then `relaydesk check-hop URL` looks from here",
)
STEPS: Final[dict[Step, str]] = {"layers": "1 Layers", "probes": "2 Probes", "result": "3 Result"}
OFFERED: Final[dict[Step, tuple[str, ...]]] = {
    "layers": tuple(f"hopcheck.{verb}" for verb in ("run", "add", "edit", "remove", "long")),
    "probes": ("hopcheck.cancel", "hopcheck.change"),
    "result": tuple(f"hopcheck.{verb}" for verb in ("run", "next", "probes", "change")),
}
# Left out of the footer while there is nothing to do it to.
HIDDEN: Final = ("hopcheck.cancel", "hopcheck.next", "hopcheck.probes")


def state(view: NodeView, link: Link) -> PaneState:
    """What to say in place of the wizard, or above it: no node, an old one, or one outside the network."""
    section = view.hopcheck
    # A node that has the section sends it with all the others.
    if section.state == "loading" and link.state == "live" and view.meta.value is not None:
        return PaneState("failed", OLD, covers=True)
    network = view.network.value
    off = OFF if network is not None and not network.on else None
    return pane_state("The check", section, link, off)


def first_step(check: HopCheckView) -> Step:
    """Where it begins: at what runs, else at what was found, unless the node has seen worse since."""
    if check.running:
        return "probes"
    report, schedule = check.report, check.schedule
    worse = schedule.passing is False and report is not None and schedule.last_at_ms > report.at_ms
    return "result" if report is not None and not worse else "layers"


def steps(step: Step | None, width: int) -> tuple[Piece, ...]:
    """The wizard's own strip: its name, and the three steps with the one that is shown."""
    right: list[Piece] = []
    for name, word in STEPS.items():
        right += [Piece(" › ", "faint")] if right else []
        right.append(Piece(f" {word} ", "pill" if name == step else "dim"))
    room = width - sum(piece.width for piece in right) - 3
    title = next((each for each in TITLES if len(each) <= room), "")
    return spread((Piece(" "), Piece(title, "strong")), (*right, Piece(" ")), width)


@dataclass(frozen=True, slots=True)
class There:
    """What an action finds: the step, what there is, and the layer under the cursor."""

    step: Step
    running: bool = False
    report: bool = False
    target: bool = False
    many: bool = False
    entry: Entry | None = None


_OWN: Final = "the node found it itself, and always asks it"


def reason(action_id: str, there: There) -> str:
    """Why an action of the wizard cannot be done now; empty where it can."""
    verb = action_id.partition(".")[2]
    if verb in ("add", "edit", "remove", "long"):
        return "b goes back to the layers" if there.step != "layers" else _of_layer(verb, there)
    if verb == "run":
        if there.running:
            return "a check is running"
        return "" if there.target else "no public URL is known: e gives one"
    if verb == "cancel":
        return "" if there.running else "no check is running"
    if verb in ("next", "before"):
        if there.step != "result":
            return "there is no result here"
        return "" if there.many else "there is nothing else"
    if verb == "probes":
        return "" if there.running or there.report else "no check was made yet"
    return "" if there.step != "layers" else "they are shown"


def _of_layer(verb: str, there: There) -> str:
    entry = there.entry
    if verb in ("add", "long"):
        return ""
    if verb == "edit":
        if not there.target:
            return ""
        return "" if entry is not None and (entry.mine or entry.kind == "public") else _OWN
    if entry is None:
        return "no layer is selected"
    if entry.mine:
        return ""
    return "it is what the node advertises: e gives another" if entry.kind == "public" else _OWN

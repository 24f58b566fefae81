"""The states a pane can be in, each a sentence and a next action: loading, empty, failed, stale, ready."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from relaydesk.core.view.sections import Section
from relaydesk.surfaces.console.data import Link

Kind = Literal["loading", "empty", "failed", "stale", "ready"]


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence and the next action."""

    sentence: str
    action: str


@dataclass(frozen=True, slots=True)
class PaneState:
    """A pane's state. ``covers``: there is nothing to show but the notice; else it stands above the body."""

    kind: Kind
    notice: Notice | None = None
    covers: bool = False

    @property
    def tone(self) -> str:
        """How the notice is marked."""
        return _TONES[self.kind]


_TONES: Final[dict[Kind, str]] = {
    "loading": "info",
    "empty": "dim",
    "failed": "error",
    "stale": "warn",
    "ready": "",
}
READY: Final = PaneState("ready")


def pane_state(title: str, section: Section[Any], link: Link, empty: Notice | None) -> PaneState:
    """What to say of a pane whose subject is ``section``; ``empty`` is its own word for an empty value."""
    if section.value is None:
        return _without_value(title, section, link)
    if link.state == "lost":
        action = link.hint if link.code == "conflict" else "g tries again now"
        notice = Notice(f"as of {clock_time(section.as_of_ms)}: {link.why}", action)
        return PaneState("stale", notice, covers=empty is not None)
    if section.state == "failed" and section.fault is not None:
        since = f"as of {clock_time(section.as_of_ms)}"
        notice = Notice(f"{since}: {section.fault.message}", section.fault.hint or "see the log")
        return PaneState("failed", notice)
    if empty is not None:
        return PaneState("empty", empty, covers=True)
    return READY


def _without_value(title: str, section: Section[Any], link: Link) -> PaneState:
    if link.state == "lost":
        action = link.hint or "see whether it runs: `relaydesk status`"
        # One that is there and of another version is a node all the same.
        there = link.code == "conflict"
        said = f"{link.why[:1].upper()}{link.why[1:]}." if there else f"No node: {link.why}."
        return PaneState("failed", Notice(said, action), covers=True)
    if section.state == "failed":
        fault = section.fault
        sentence = f"{title} cannot be read: {fault.message if fault else 'the node gave no reason'}."
        return PaneState("failed", Notice(sentence, (fault and fault.hint) or "see the log"), covers=True)
    return PaneState(
        "loading",
        Notice("Waiting for the node's first answer.", "if this stays: `relaydesk status`"),
        covers=True,
    )


def clock_time(at_ms: int) -> str:
    """Local time of day, to the second."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone().strftime("%H:%M:%S")

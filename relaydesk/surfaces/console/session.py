"""What a console is opened on, and how it is to look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from relaydesk.core.ports import Clock
from relaydesk.surfaces.console.data import Connect
from relaydesk.surfaces.console.keymap import Keymap
from relaydesk.surfaces.console.prefs import Prefs


@dataclass(frozen=True, slots=True)
class Session:
    """What the console is opened on.

    ``stop`` is given where the node runs inside this console: the first call drains and stops it, the second
    stops at once, and whoever gave it closes the console when the node has ended. ``keep`` keeps what the
    user chooses, and says why it could not.
    """

    connect: Connect
    clock: Clock
    read_only: bool = False
    stop: Callable[[], None] | None = None
    ascii: bool = False
    keymap: Keymap = field(default_factory=Keymap)
    prefs: Prefs = field(default_factory=Prefs)
    keep: Callable[[Prefs], str] | None = None

    @property
    def mode(self) -> str:
        """The word at the strip's left end."""
        where = "EMBEDDED" if self.stop is not None else "ATTACHED"
        return "READ-ONLY" if self.read_only else where

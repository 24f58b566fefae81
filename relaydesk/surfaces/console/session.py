"""What a console is opened on, and how it is to look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from relaydesk.core.ports import Clock
from relaydesk.surfaces.console import themes
from relaydesk.surfaces.console.data import Connect
from relaydesk.surfaces.console.keymap import Keymap


@dataclass(frozen=True, slots=True)
class Session:
    """What the console is opened on.

    ``stop`` is given where the node runs inside this console: the first call drains and stops it, the second
    stops at once, and whoever gave it closes the console when the node has ended.
    """

    connect: Connect
    clock: Clock
    read_only: bool = False
    stop: Callable[[], None] | None = None
    ascii: bool = False
    theme: str = themes.DARK.name
    keymap: Keymap = field(default_factory=Keymap)

    @property
    def mode(self) -> str:
        """The word at the strip's left end."""
        where = "EMBEDDED" if self.stop is not None else "ATTACHED"
        return "READ-ONLY" if self.read_only else where

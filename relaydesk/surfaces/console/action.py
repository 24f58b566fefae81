"""One row of the table of actions: all that footer, help, palette, key documents and remapping know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relaydesk.core.commands import Access, Command

# Contexts besides a pane's id: everywhere, and where there is a list.
ANYWHERE: Final = "app"
LIST: Final = "list"


@dataclass(frozen=True, slots=True)
class Action:
    """Something a key does.

    ``id`` is ``area.verb`` and names it in ``keys.toml``. ``keys`` are Textual's names, comma-separated.
    ``title`` is the palette's ``Noun: verb``, ``label`` the footer's word, ``help`` a sentence. ``cli`` is
    the command line that does the same, with the command's field names in capitals where the selection fills
    them in. ``command`` is what it sends to the node: access and danger come from there. ``ask`` is the
    question whose answer the action needs first. Of what does not fit the footer, the lowest ``footer`` goes
    first; 0 never has a place there.
    """

    id: str
    keys: str
    title: str
    label: str
    help: str
    where: str = ANYWHERE
    cli: str = ""
    command: type[Command] | None = None
    ask: str = ""
    footer: int = 0

    @property
    def area(self) -> str:
        """What the action is about."""
        return self.id.partition(".")[0]

    @property
    def method(self) -> str:
        """The method of pane or app that carries it out, where it sends no command."""
        return "do_" + self.id.partition(".")[2].replace("-", "_")

    @property
    def writes(self) -> bool:
        """Whether a read-only console may not do it."""
        return self.command is not None and self.command.access is Access.WRITE

    @property
    def danger(self) -> str:
        """What would be lost; empty where nothing is."""
        return self.command.danger if self.command is not None else ""


def key_name(keys: str) -> str:
    """Keys as people write them: ``ctrl+p`` is ``^p``."""
    return " ".join(_NAMES.get(key, key.replace("ctrl+", "^")) for key in _split(keys))


def _split(keys: str) -> list[str]:
    return [key.strip() for key in keys.split(",") if key.strip()]


_NAMES: Final = {
    "question_mark": "?",
    "colon": ":",
    "slash": "/",
    "plus": "+",
    "minus": "-",
    "escape": "esc",
    "enter": "enter",
    "space": "space",
    "comma": ",",
}

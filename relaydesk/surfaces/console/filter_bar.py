"""The filter of a list: one line above the footer while it is typed or in force."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from relaydesk.surfaces.console.ask import TextInput


class FilterBar(Horizontal):
    """Shown while there is something to type or something typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "clear", show=False),
        Binding("down", "keep", show=False),
    ]

    class Changed(Message):
        """The filter is another one."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        """The keyboard goes back to the list."""

    def compose(self) -> ComposeResult:
        yield Static("/", id="slash", markup=False)
        yield TextInput(placeholder="words that a row must hold", compact=True, id="filter")
        yield Static("esc clears it", id="filter-hint", markup=False)

    @property
    def text(self) -> str:
        """What is in force."""
        return self._input.value

    def open(self) -> None:
        """Show it and take the keyboard."""
        self.display = True
        self._input.focus()

    def load(self, text: str) -> None:
        """Another pane's filter."""
        with self.prevent(Input.Changed):
            self._input.value = text
        self.display = bool(text)

    def action_clear(self) -> None:
        """Show every row again."""
        self._input.value = ""
        self.display = False
        self.post_message(self.Left())

    def action_keep(self) -> None:
        """Leave the filter in force."""
        self.display = bool(self._input.value)
        self.post_message(self.Left())

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(event.value))

    @on(Input.Submitted)
    def _kept(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_keep()

    @property
    def _input(self) -> Input:
        return self.query_one(Input)

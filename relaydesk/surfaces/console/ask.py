"""Questions over a pane: one to confirm, one to be answered with a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from relaydesk.surfaces.console.piece_line import PieceLine
from relaydesk.surfaces.console.pieces import STYLES, Piece


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked; ``yes`` is what confirming is called, ``cli`` the command line that does the same."""

    title: str
    sentences: tuple[str, ...]
    yes: str
    cli: str = ""
    loses: str = ""


class Confirm(ModalScreen[bool]):
    """Says what would be lost. Only ``y`` confirms: no key that opens a question, and not Enter."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("escape,n,q", "answer(False)", show=False),
    ]

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        with Vertical(classes="card"):
            yield Static(_title(self.question.title), classes="title")
            yield Static(_body(self.question), classes="text")
            yield PieceLine(id="keys")

    def on_mount(self) -> None:
        self.query_one(PieceLine).show(
            (
                Piece("y", "accent", "screen.answer(True)"),
                Piece(f" {self.question.yes}", "", "screen.answer(True)"),
                Piece("    "),
                Piece("esc", "accent", "screen.answer(False)"),
                Piece(" leave it", "", "screen.answer(False)"),
            )
        )

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        self.dismiss(yes)


class TextInput(Input):
    """An input whose readline keys stay readline's: the palette's ^p is not for here."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+p,ctrl+n", "nothing", show=False)]

    def action_nothing(self) -> None:
        """Keys that other programs give to history, and that mean nothing here."""


class Prompt(ModalScreen[str | None]):
    """Asks for a text; the command line that it comes to is shown as it is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self, title: str, ask: str, cli: str) -> None:
        super().__init__()
        self._title = title
        self._ask = ask
        self._cli = cli

    def compose(self) -> ComposeResult:
        with Vertical(classes="card"):
            yield Static(_title(self._title), classes="title")
            yield TextInput(placeholder=self._ask, compact=True, id="answer")
            yield Static(self._line(""), id="cli", classes="text", markup=False)
            yield PieceLine(id="keys")

    def on_mount(self) -> None:
        keys = (
            Piece("enter", "accent"),
            Piece(" do it    "),
            Piece("esc", "accent", "screen.leave"),
            Piece(" leave it"),
        )
        self.query_one(PieceLine).show(keys)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self.query_one("#cli", Static).update(self._line(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.dismiss(event.value.strip())

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    def _line(self, answer: str) -> Content:
        line = self._cli.replace("ANSWER", answer.strip() or self._ask.upper().replace(" ", "-"))
        return Content.assemble(("does the same as  ", STYLES["dim"]), line)


def _title(text: str) -> Content:
    return Content.styled(text, "bold")


def _body(question: Question) -> Content:
    parts: list[str | tuple[str, str]] = []
    for sentence in question.sentences:
        parts += [sentence, "\n"]
    if question.loses:
        parts += [("▲ Lost: ", STYLES["warn"]), question.loses, "\n"]
    if question.cli:
        parts += ["\n", ("does the same as  ", STYLES["dim"]), question.cli]
    return Content.assemble(*parts).rstrip()

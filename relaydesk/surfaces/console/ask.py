"""Questions over a pane: one to confirm, one to be answered with texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from relaydesk.surfaces.console.piece_line import PieceLine
from relaydesk.surfaces.console.pieces import MARKS, STYLES, Piece
from relaydesk.surfaces.console.widgets.cells import width as cells

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Field:
    """One text that is asked for: ``hint`` stands where there is none, ``value`` is what holds now."""

    label: str
    hint: str = ""
    value: str = ""
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked; ``yes`` is what confirming is called, ``cli`` the command line that does the same."""

    title: str
    sentences: tuple[str, ...]
    yes: str
    cli: str = ""
    loses: str = ""


class Dialog(ModalScreen[T]):
    """A card over the pane. Where the terminal is too small for one, it is hidden and takes no keys."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key may do this now."""
        return not (self.has_class("-tiny-w") or self.has_class("-tiny-h")) and super().check_action(
            action, parameters
        )

    def on_resize(self) -> None:
        """Back from a terminal too small the keyboard is the card's again."""
        self.call_after_refresh(self._take_keys)

    def _take_keys(self) -> None:
        if self.focused is None and self.is_current:
            found = self.focus_next()
            if isinstance(found, Input):
                # Taking the keyboard selects all: the next key would replace what was typed.
                self.call_after_refresh(found.action_end)


class Confirm(Dialog[bool]):
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


class Prompt(Dialog[tuple[str, ...]]):
    """Asks for texts; the command line that they come to is shown as they are typed.

    ``line`` makes it of the answers. ``said`` is why the last answers were refused: they stand there again.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(
        self,
        title: str,
        fields: Sequence[Field],
        line: Callable[[tuple[str, ...]], str],
        notes: Sequence[str] = (),
        said: str = "",
    ) -> None:
        super().__init__()
        self._title = title
        self._fields = tuple(fields)
        self._line = line
        self._notes = tuple(notes)
        self._said = said

    def compose(self) -> ComposeResult:
        several = len(self._fields) > 1
        room = max(cells(field.label) for field in self._fields) + 1
        with Vertical(classes="card"):
            yield Static(_title(self._title), classes="title")
            if self._said:
                yield Static(Content.styled(f"{MARKS['error']} {self._said}", STYLES["error"]), id="said")
            for at, field in enumerate(self._fields):
                with Horizontal(classes="field"):
                    if several:
                        label = Static(Content.styled(field.label, STYLES["dim"]), classes="label")
                        label.styles.width = room
                        yield label
                    yield TextInput(field.value, placeholder=field.hint, compact=True, id=f"answer-{at}")
            yield Static(self._text(), id="cli", classes="text", markup=False)
            yield PieceLine(id="keys")

    def on_mount(self) -> None:
        more = (Piece("tab", "accent"), Piece(" next    ")) if len(self._fields) > 1 else ()
        keys = (
            Piece("enter", "accent"),
            Piece(" do it    "),
            *more,
            Piece("esc", "accent", "screen.leave"),
            Piece(" leave it", "", "screen.leave"),
        )
        self.query_one(PieceLine).show(keys)

    @property
    def answers(self) -> tuple[str, ...]:
        """What is typed so far."""
        return tuple(each.value.strip() for each in self.query(TextInput))

    @on(Input.Changed)
    def _changed(self) -> None:
        self.query_one("#cli", Static).update(self._text())

    @on(Input.Submitted)
    def _submitted(self) -> None:
        for field, answer, place in zip(self._fields, self.answers, self.query(TextInput), strict=True):
            if field.needed and not answer:
                place.focus()
                return
        self.dismiss(self.answers)

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    def _text(self) -> Content:
        answers = self.answers if self.is_mounted else tuple(field.value for field in self._fields)
        line = self._line(answers)
        parts: list[str | tuple[str, str]] = [("does the same as  ", STYLES["dim"]), line] if line else []
        for note in self._notes:
            parts += ["\n" if parts else "", (note, STYLES["dim"])]
        return Content.assemble(*parts)


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

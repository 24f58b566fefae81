"""What every pane is: a title, sections of the view, a body, and the notice that stands over or above it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.widget import Widget

from relaydesk.core.commands import Command, Outcome
from relaydesk.core.view.node_view import NodeView
from relaydesk.surfaces.console.action import Action
from relaydesk.surfaces.console.ask import Field
from relaydesk.surfaces.console.data import Link
from relaydesk.surfaces.console.list_detail import ListDetail
from relaydesk.surfaces.console.notice import NoticeBox
from relaydesk.surfaces.console.registry import PaneSpec
from relaydesk.surfaces.console.states import Notice, PaneState, pane_state
from relaydesk.surfaces.console.widgets.live_table import LiveTable
from relaydesk.surfaces.console.widgets.rows import Sort

if TYPE_CHECKING:
    from relaydesk.surfaces.console.app import ConsoleApp


class Pane(Container):
    """A pane. Subclasses set ``BINDINGS = bindings_for(LIST, "<id>")`` and fill in what follows.

    `compose_body` yields the widgets (usually one `ListDetail`), `show` puts a view into them. `show` runs
    only when a section of the pane differs, and never without a value of its main section. Everything about
    the node goes through `request` (what to send) and `reason` (why it cannot be sent now).
    """

    DEFAULT_CSS = """
    Pane { height: 1fr; }
    Pane > #body { height: 1fr; }
    """
    # Where there is no list, the list's keys are not offered.
    HAS_LIST: ClassVar[bool] = True

    def __init__(self, spec: PaneSpec) -> None:
        super().__init__(id=f"pane-{spec.id}")
        self.spec = spec
        self.state: PaneState = PaneState("loading")
        self.view: NodeView | None = None
        self._shown: tuple[Any, ...] = ()

    def compose(self) -> ComposeResult:
        yield NoticeBox(id="notice")
        with Vertical(id="body"):
            yield from self.compose_body()

    # What a pane fills in.

    def compose_body(self) -> ComposeResult:
        """The pane's widgets."""
        return ()

    def show(self, view: NodeView) -> None:
        """Put the view into the widgets. Its main section has a value, perhaps an old one."""

    def empty(self, view: NodeView) -> Notice | None:
        """What to say where the main section's value holds nothing; None where it holds something."""
        return None

    def tick(self, now_ms: int) -> None:
        """Once a second while shown: for ages. Must cost nothing where no text changes."""

    def subject(self) -> str:
        """What the selected row is called, for questions and answers; empty for none."""
        return ""

    def reason(self, action: Action) -> str:
        """Why the action cannot be done now, as a sentence without a full stop; empty where it can."""
        return ""

    def meant(self, action: Action, *answers: str) -> str:
        """What an action is done to: by default what is selected. ``answers`` are the texts it asked for."""
        return self.subject()

    def phrase(self, action: Action, *answers: str) -> str:
        """What the action does and to what, as a question or an answer begins: ``pull smollm2``."""
        return f"{action.label} {self.meant(action, *answers)}".rstrip()

    async def prepare(self, action: Action) -> None:
        """Fetch what the action needs to know before anything is asked. May raise `FaultError`."""

    def fields(self, action: Action) -> tuple[Field, ...]:
        """The texts that an action asks for, with what holds now."""
        return (Field(action.ask, action.ask, needed=True),) if action.ask else ()

    def notes(self, action: Action) -> tuple[str, ...]:
        """What may be typed, as sentences below the command line."""
        return ()

    def request(self, action: Action, *answers: str) -> Command:
        """The command to send for an action. Raises `FaultError` where the answers cannot be.

        By default the command with nothing filled in.
        """
        assert action.command is not None
        return action.command()

    def cli(self, action: Action, *answers: str) -> str:
        """The command line that does the same, with the selection filled in."""
        line = action.cli.replace("NAME", self.meant(action, *answers) or "NAME")
        answer = answers[0] if answers and answers[0] else action.ask.upper().replace(" ", "-")
        return line.replace("ANSWER", answer)

    def asks(self, action: Action) -> tuple[str, ...]:
        """Sentences to be confirmed before an action that loses nothing; none where it need not ask."""
        return ()

    def done(self, action: Action, command: Command) -> str:
        """What came of a command that was carried out, in a word or two."""
        return "done"

    def settle(self, action: Action) -> bool:
        """Do an action without the node where that is what it means now; False where it is not."""
        return False

    def weight(self, action: Action) -> int:
        """The action's place in the footer now (see `Action.footer`)."""
        return action.footer

    def loss(self, action: Action) -> str:
        """What would be lost, as the question before a dangerous action says it."""
        return action.danger

    def answered(self, action: Action, command: Command, outcome: Outcome) -> bool:
        """Show what came of a command that was carried out; False leaves it to a toast."""
        return False

    def copied(self) -> str:
        """What the copy key puts on the clipboard: by default the selected row's cells."""
        return self.row_text()

    # What a pane has.

    def row_text(self) -> str:
        """The selected row's cells; empty where no row is selected."""
        table = self.table
        row = table.cursor_row if table is not None else None
        return "  ".join(cell.text for cell in row.cells if cell.text) if row is not None else ""

    @property
    def desk(self) -> ConsoleApp:
        """The console that the pane stands in."""
        return cast("ConsoleApp", self.app)

    @property
    def now_ms(self) -> int:
        """Wall-clock time of the console's own clock."""
        return self.desk.session.clock.wall_ms()

    @property
    def hint(self) -> tuple[str, str, str]:
        """Key, word and action of what Enter or Escape does now; empty where they do nothing."""
        both = next(iter(self.query(ListDetail)), None)
        if both is None or self.state.covers:
            return ("", "", "")
        return ("esc", "back", "app.back") if both.opened else ("enter", "detail", "app.open")

    def open_detail(self) -> None:
        """Open the detail of the selected row."""
        if self.table is not None:
            self.table.action_select()

    @property
    def table(self) -> LiveTable | None:
        """The pane's first list, None where it has none."""
        return next(iter(self.query(LiveTable)), None)

    def take(self, view: NodeView, link: Link) -> None:
        """A new view or a new link: decide the state, and show what differs."""
        self.view = view
        main = getattr(view, self.spec.sections[0])
        nothing = self.empty(view) if main.value is not None else None
        self._enter(pane_state(self.spec.title, main, link, nothing))
        values = tuple(getattr(view, name).value for name in self.spec.sections)
        if main.value is not None and values != self._shown:
            self._shown = values
            self.show(view)

    def focus_default(self) -> None:
        """Give the keyboard to the pane's list, or to whatever of it takes keys."""
        first: Widget | None = self.table
        if first is None or self.state.covers:
            first = next((each for each in self.query("*") if each.focusable), None)
        if first is not None:
            first.focus(scroll_visible=False)
        else:
            self.screen.set_focus(None)

    def do_sort(self) -> None:
        """The next column."""
        if self.table is not None:
            self.table.cycle_sort()

    def do_reverse(self) -> None:
        """The other direction; without an order, the first column the other way round."""
        table = self.table
        if table is None:
            return
        if table.sort is None and table.shown_columns:
            table.sort = Sort(table.shown_columns[0].key, descending=True)
        else:
            table.reverse_sort()

    def set_filter(self, text: str) -> None:
        """Show only rows that hold ``text``."""
        if self.table is not None:
            self.table.filter_text = text

    def close_detail(self) -> bool:
        """Close what lies over the list; False where nothing does."""
        return any(both.close() for both in self.query(ListDetail))

    def clear_limits(self) -> bool:
        """Show again what a key of the pane left out; False where nothing is left out."""
        return False

    def _enter(self, state: PaneState) -> None:
        if state == self.state and self._shown:
            return
        covered = self.state.covers
        self.state = state
        self.query_one(NoticeBox).show(state)
        body = self.query_one("#body")
        body.display = not state.covers
        for table in self.query(LiveTable):
            table.stale = state.kind in ("stale", "failed")
        if covered and not state.covers and self.has_focus_here:
            self.call_after_refresh(self.focus_default)

    @property
    def has_focus_here(self) -> bool:
        """Whether the keyboard is this pane's: its own widgets have it, or nothing has."""
        focused = self.screen.focused
        return focused is None or focused in self.query("*")

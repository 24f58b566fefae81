"""The keys pane."""

from __future__ import annotations

from typing import Final, TypeAlias

from textual import on
from textual.app import ComposeResult

from relaydesk.core.access.key import DEFAULT_KEY
from relaydesk.core.access.quota import day_of
from relaydesk.core.codec import fault_view
from relaydesk.core.commands import (
    AddKey,
    Command,
    Outcome,
    RemoveKey,
    RotateDefaultKey,
    SetKey,
    ShowDefaultKey,
    ShowUsage,
)
from relaydesk.core.errors import Fault, FaultError, LocalError
from relaydesk.core.text import safe_text
from relaydesk.core.view.amounts import plural
from relaydesk.core.view.node_view import NodeView
from relaydesk.core.view.sections import FaultView, KeyView
from relaydesk.surfaces.console.action import LIST, Action
from relaydesk.surfaces.console.ask import Field
from relaydesk.surfaces.console.bindings import bindings_for
from relaydesk.surfaces.console.list_detail import ListDetail
from relaydesk.surfaces.console.list_pane import ListPane
from relaydesk.surfaces.console.panes.keys import detail, form, present, usage
from relaydesk.surfaces.console.panes.keys.client import client_lines
from relaydesk.surfaces.console.panes.keys.reveal import Reveal
from relaydesk.surfaces.console.panes.made import Made
from relaydesk.surfaces.console.registry import PaneSpec
from relaydesk.surfaces.console.states import Notice
from relaydesk.surfaces.console.widgets.live_table import LiveTable

Used: TypeAlias = usage.Usage | FaultView
# Longer than any key of ours; an answer that is longer is none.
_LONGEST_KEY: Final = 512
_USE: Final = "Clients send it as a bearer token. Whoever has it can use this hub."
_ONCE: Final = "This is the only time it is shown: give it to its client before you close this card."
_ROTATED: Final = "The old one is refused from now on: give every client this one."


class KeysPane(ListPane):
    """The keys, what each may use and has used."""

    BINDINGS = bindings_for(LIST, "keys")

    def __init__(self, spec: PaneSpec) -> None:
        super().__init__(spec)
        # By key: the day its usage was asked for, and the answer once it is there. Days that are over stay.
        self._used: dict[str, tuple[int, Used | None]] = {}

    def compose_body(self) -> ComposeResult:
        yield ListDetail(LiveTable(present.COLUMNS, id="list"), Made(id="key"))
        yield Made(id="client")

    def empty(self, view: NodeView) -> Notice | None:
        keys = view.keys.value
        return present.EMPTY if keys is not None and not keys.keys else None

    def show(self, view: NodeView) -> None:
        meta = view.meta.value
        self.query_one("#client", Made).show(lambda width, *_: client_lines(meta, width))
        self.tick(self.now_ms)
        self.show_detail()

    def tick(self, now_ms: int) -> None:
        keys = self.view.keys.value if self.view is not None else None
        if keys is not None and self.table is not None:
            self.table.rows = present.rows(keys, now_ms, ascii=self.desk.ascii)

    def copied(self) -> str:
        return self.row_text()

    def meant(self, action: Action, *answers: str) -> str:
        if action.id == "keys.add":
            return answers[0] if answers else ""
        return DEFAULT_KEY if action.id in ("keys.show", "keys.rotate") else self.subject()

    def reason(self, action: Action) -> str:
        if action.id not in ("keys.edit", "keys.revoke"):
            return ""
        if not self.subject():
            return "no key is selected"
        if self.subject() != DEFAULT_KEY:
            return ""
        return "the default key has no limits; a makes one that has" if action.id == "keys.edit" else _NO_END

    def fields(self, action: Action) -> tuple[Field, ...]:
        if action.id == "keys.add":
            return (Field("name", "who it is for", needed=True), *form.fields())
        return form.fields(self._selected) if action.id == "keys.edit" else ()

    def notes(self, action: Action) -> tuple[str, ...]:
        return (form.NOTE,)

    def request(self, action: Action, *answers: str) -> Command:
        match action.id.partition(".")[2]:
            case "add":
                return AddKey(name=answers[0], settings=form.settings(answers[1:], self.now_ms))
            case "edit":
                changes = form.settings(answers, self.now_ms, self._selected)
                if not changes:
                    raise LocalError("invalid_request", "nothing is different", "change a line, or leave it")
                return SetKey(name=self.subject(), settings=changes)
            case "revoke":
                return RemoveKey(name=self.subject())
            case "show":
                return ShowDefaultKey()
            case _:
                return RotateDefaultKey()

    def cli(self, action: Action, *answers: str) -> str:
        line = super().cli(action, *answers)
        if action.id == "keys.add":
            line = line.replace("OPTIONS", form.options(answers[1:]) if answers else "")
        elif action.id == "keys.edit":
            line = line.replace("OPTIONS", form.options(answers, self._selected) if answers else "")
        return line.rstrip()

    def loss(self, action: Action) -> str:
        key = self._selected
        if action.id != "keys.revoke" or key is None or not key.running:
            return action.danger
        return f"{action.danger}; its {plural(key.running, 'request')} under way may end"

    def answered(self, action: Action, command: Command, outcome: Outcome) -> bool:
        secret = outcome.value.get("key") if isinstance(outcome.value, dict) else None
        if not isinstance(secret, str):
            return False
        title, note = {
            "keys.add": (f"The key of {self.meant(action, getattr(command, 'name', ''))}", _ONCE),
            "keys.rotate": ("The new default key", _ROTATED),
        }.get(action.id, ("The default key", _USE))
        card = Reveal(title, safe_text(secret, _LONGEST_KEY), note, once=action.id == "keys.add")
        self.app.push_screen(card)
        return True

    def close_detail(self) -> bool:
        self.remove_class("-detail")
        return super().close_detail()

    @on(LiveTable.RowSelected)
    def _opened(self) -> None:
        self.add_class("-detail")
        # What could not be fetched is asked for again by whoever looks at it again.
        if isinstance(self._used.get(self.subject(), (0, None))[1], FaultView):
            del self._used[self.subject()]
        self.show_detail()

    @property
    def _selected(self) -> KeyView | None:
        return present.find(self.view.keys.value, self.subject()) if self.view is not None else None

    def show_detail(self) -> None:
        view, key = self.view, self._selected
        made = self.query_one("#key", Made)
        if view is None or key is None:
            made.show(None)
            return
        self._ask(key.name)
        meta, now_ms, used = view.meta.value, self.now_ms, self._used.get(key.name, (0, None))[1]
        made.show(lambda width, _height, ascii: detail.lines(key, meta, used, now_ms, width, ascii=ascii))

    def _ask(self, name: str) -> None:
        """Have the usage fetched, once a day: what is of today the view says."""
        today = day_of(self.now_ms)
        known = self._used.get(name)
        if self.query_one(ListDetail).detail_shown and (known is None or known[0] != today):
            self._used[name] = (today, known[1] if known is not None else None)
            work = self._fetch(name, today)
            self.run_worker(work, name="usage", group="usage", exit_on_error=False)

    async def _fetch(self, name: str, today: int) -> None:
        node = self.desk.feed.node
        if node is None:
            return
        try:
            outcome = await node.call(ShowUsage(name=name, since_day=today - usage.MONTH + 1))
        except FaultError as error:
            found: Used = fault_view(error.fault)
        else:
            found = outcome.fault or usage.as_usage(outcome.value) or fault_view(_UNREADABLE)
        self._used[name] = (today, found)
        self.show_detail()


_NO_END: Final = "the default key is not revoked; r replaces it"
_UNREADABLE: Final = Fault(
    "internal_error",
    "the node's answer cannot be read",
    "restart the node and the console, so that both run the version installed now",
)

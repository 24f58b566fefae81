"""The one table of actions, and what is made of it: Textual bindings, footer, help, ``docs/keys.md``."""

from __future__ import annotations

from typing import Final

from textual.binding import Binding

from relaydesk.core.commands import Stop
from relaydesk.surfaces.console.action import ANYWHERE, LIST, Action, key_name
from relaydesk.surfaces.console.panes.hopcheck.actions import ACTIONS as HOP_CHECK
from relaydesk.surfaces.console.panes.hopcheck.actions import HOPCHECK, OPEN
from relaydesk.surfaces.console.registry import PANES

_PANE_ACTIONS: Final = tuple(
    Action(
        f"pane.{spec.id}",
        str(spec.digit),
        f"Pane: {spec.title}",
        spec.title,
        f"show the pane {spec.title}" + ("; the command line is for a service" if spec.id == "log" else ""),
        cli=spec.cli,
    )
    for spec in PANES
)
FRAME: Final = (
    Action(
        "list.filter",
        "slash",
        "List: filter",
        "filter",
        "show only rows that contain a text",
        LIST,
        footer=60,
    ),
    Action("list.sort", "s", "List: sort", "sort", "sort by the next column", LIST, footer=50),
    Action("list.reverse", "S", "List: reverse", "reverse", "turn the sort order around", LIST),
    Action("list.copy", "c", "List: copy", "copy", "copy what is selected to the clipboard", LIST, footer=30),
    Action("view.pause", "p", "View: pause", "pause", "stop and go on showing changes", footer=40),
    Action("view.faster", "plus", "View: faster", "faster", "show changes more often"),
    Action("view.slower", "minus", "View: slower", "slower", "show changes less often"),
    Action("view.retry", "g", "View: connect again", "again", "try to reach the node now"),
    OPEN,
    Action("view.theme", "t", "View: theme", "theme", "next theme: dark, light, the terminal's own colours"),
    Action(
        "app.help", "question_mark", "Help", "help", "what this pane shows and which keys it has", footer=90
    ),
    Action("app.palette", "colon,ctrl+p", "Palette", "palette", "find an action by its name", footer=80),
    Action("app.quit", "q,ctrl+q,ctrl+c", "Quit", "quit", "leave the console", footer=100),
    Action(
        "node.stop",
        "",
        "Node: stop",
        "stop",
        "drain, then stop the node",
        cli="kill -TERM PID",
        command=Stop,
    ),
)
TABLE: Final = (*_PANE_ACTIONS, *FRAME, *(action for spec in PANES for action in spec.actions), *HOP_CHECK)
BY_ID: Final = {action.id: action for action in TABLE}
# Moves that every list and text has; documented, not remapped.
FIXED: Final = (
    ("up down pgup pgdn home end", "move the cursor"),
    ("enter", "open the detail of the selected row, or move into it"),
    ("esc", "back: close the detail, the filter, a question"),
    ("tab", "next part of the pane"),
    ("y", "confirm a question that says what would be lost"),
)


def active(pane_id: str, has_list: bool = True) -> tuple[Action, ...]:
    """Every action there is while this pane is shown."""
    wheres = {ANYWHERE, pane_id} | ({LIST} if has_list else set())
    return tuple(action for action in TABLE if action.where in wheres)


def bindings_for(*wheres: str) -> list[Binding | tuple[str, str] | tuple[str, str, str]]:
    """The Textual bindings of these contexts; every one runs the action by its id."""
    return [
        Binding(action.keys, f"app.run('{action.id}')", action.label, show=False, id=action.id)
        for action in TABLE
        if action.where in wheres and action.keys
    ]


def keys_document() -> str:
    """``docs/keys.md``: generated, and checked by a test."""
    lines = [
        "# Keys of the console",
        "",
        "Made from the console's table of actions. Every key can be changed: put lines like",
        '`"view.pause" = "P"` under `[keys]` in `keys.toml`, beside `relaydesk.toml`.',
        "Theme and rate are kept as they were chosen last, in `console.toml` in the state directory.",
        "",
    ]
    for where, title in _contexts():
        rows = [action for action in TABLE if action.where == where]
        if not rows:
            continue
        lines += [f"## {title}", "", "| key | does | id | command line |", "|---|---|---|---|"]
        lines += [_row(action) for action in rows] + [""]
    lines += ["## Fixed", "", "| key | does |", "|---|---|"]
    lines += [f"| `{keys}` | {does} |" for keys, does in FIXED]
    return "\n".join(lines) + "\n"


def _contexts() -> list[tuple[str, str]]:
    panes = ((spec.id, spec.title) for spec in PANES)
    return [(ANYWHERE, "Everywhere"), (LIST, "In a list"), *panes, (HOPCHECK, "Hop check")]


def _row(action: Action) -> str:
    keys = f"`{key_name(action.keys)}`" if action.keys else "(palette)"
    does = action.help + (f"; **asks first**, loses {action.danger}" if action.danger else "")
    cli = f"`{action.cli}`" if action.cli else ""
    return f"| {keys} | {does} | `{action.id}` | {cli} |"

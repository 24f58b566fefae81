"""``keys.toml``: the operator's own keys, checked before any is used."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from relaydesk.surfaces.console.action import ANYWHERE, LIST, Action
from relaydesk.surfaces.console.bindings import TABLE

FILE_NAME: Final = "keys.toml"
# Moves, confirmation, the prefix of tmux and screen, and what terminals turn into other keys.
RESERVED: Final = frozenset(
    {
        *("up", "down", "left", "right", "pageup", "pagedown", "home", "end", "enter", "escape"),
        *("tab", "shift+tab", "y", "j", "k"),
        *("ctrl+a", "ctrl+b", "ctrl+h", "ctrl+i", "ctrl+j", "ctrl+k", "ctrl+l", "ctrl+m", "ctrl+s", "ctrl+z"),
    }
)


@dataclass(frozen=True, slots=True)
class Keymap:
    """Keys by action id, the table's own where the operator gave none, and what was wrong with the file."""

    keys: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def of(self, action: Action) -> str:
        """The keys of an action, comma-separated."""
        return self.keys.get(action.id, action.keys)


def load_keymap(path: Path) -> Keymap:
    """Read the file where there is one. Never raises: a bad line is left out and named in ``problems``."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Keymap()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return Keymap(problems=(f"{path} cannot be read ({error}): the usual keys are in force",))
    return read_keymap(data.get("keys", {}), str(path))


def read_keymap(wanted: Any, where: str = FILE_NAME) -> Keymap:
    """A ``[keys]`` table as a keymap."""
    if not isinstance(wanted, dict):
        return Keymap(problems=(f'{where}: keys must be a table of id = "key"',))
    known = {action.id: action for action in TABLE}
    keys: dict[str, str] = {}
    problems: list[str] = []
    for name, given in wanted.items():
        problem = _wrong(name, given, known)
        if problem:
            problems.append(f"{where}: {problem}")
        else:
            keys[name] = ",".join(_normal(key) for key in given.split(","))
    usual = {action.id: action.keys for action in TABLE}
    # One that is given up has its usual keys again, with which another may clash now.
    while bad := _first_clash({**usual, **keys}, keys, known):
        name, clash = bad
        problems.append(f"{where}: {name}: {clash}")
        del keys[name]
    return Keymap(keys, tuple(problems))


def clashes(table: Iterable[Action]) -> list[tuple[str, str, str]]:
    """Pairs of actions that would answer to one key at one place: (key, id, id)."""
    rows = list(table)
    return [
        (key, one.id, other.id)
        for at, one in enumerate(rows)
        for other in rows[at + 1 :]
        if _meet(one, other)
        for key in sorted(_set(one.keys) & _set(other.keys))
    ]


def _wrong(name: str, given: Any, known: Mapping[str, Action]) -> str:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        return f"there is no action {name!r}" + (f", perhaps {near[0]!r}" if near else "")
    if not isinstance(given, str):
        return f'{name} must be text like "P" or "ctrl+t"'
    reserved = _set(given) & RESERVED
    return f"{name}: {min(reserved)!r} has a fixed meaning" if reserved else ""


def _first_clash(
    keys: Mapping[str, str], given: Iterable[str], known: Mapping[str, Action]
) -> tuple[str, str] | None:
    found = ((name, _clash(known[name], keys, known)) for name in given)
    return next(((name, clash) for name, clash in found if clash), None)


def _clash(action: Action, keys: Mapping[str, str], known: Mapping[str, Action]) -> str:
    for other in known.values():
        if other.id != action.id and _meet(action, other):
            both = _set(keys[action.id]) & _set(keys[other.id])
            if both:
                return f"{min(both)!r} already means {other.id}"
    return ""


def _meet(one: Action, other: Action) -> bool:
    """Whether both can be had at one time. Two panes never are; a list may be in any."""
    shared = {ANYWHERE, LIST}
    return one.where == other.where or one.where in shared or other.where in shared


def _set(keys: str) -> set[str]:
    return {_normal(key) for key in keys.split(",") if key.strip()}


def _normal(key: str) -> str:
    key = key.strip()
    return _CHARACTERS.get(key, key)


_CHARACTERS: Final = {"?": "question_mark", ":": "colon", "/": "slash", "+": "plus", "-": "minus"}

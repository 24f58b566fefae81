"""What no file of ours may contain."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.support.tree import ROOT, SOURCE, TESTS, modules

# Paths of one machine, and marks of unfinished work. Put together here: this file is searched too.
PLACES = "|".join(("root", "work"))
MARKS = "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK"))
FORBIDDEN = {
    "a path of one machine": re.compile(f"(?<![A-Za-z0-9_.])/(?:{PLACES})/"),
    "a mark of unfinished work": re.compile(rf"\b(?:{MARKS})\b"),
}
# An encoder's or decoder's hook must raise this for a type it does not know: the library's contract.
HOOKS = {"relaydesk/core/codec.py", "relaydesk/surfaces/cli/attach.py"}

FILES = [
    *modules(SOURCE),
    *modules(TESTS),
    *ROOT.glob("*.md"),
    *SOURCE.rglob("*.md"),
    ROOT / "pyproject.toml",
]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_forbidden_text() -> None:
    found = [
        f"{_name(path)} has {what}: {match.group()}"
        for path in FILES
        for what, pattern in FORBIDDEN.items()
        if (match := pattern.search(path.read_text())) is not None
    ]
    assert not found


def test_the_search_finds_what_it_is_for() -> None:
    for text in ("cd /" + "root/x", "'/" + "work/main'"):
        assert FORBIDDEN["a path of one machine"].search(text)
    for text in ("# TO" + "DO later", "FIX" + "ME"):
        assert FORBIDDEN["a mark of unfinished work"].search(text)
    assert not FORBIDDEN["a path of one machine"].search("surfaces/" + "work/ and a network/root")


def test_nothing_is_left_unwritten() -> None:
    stubs = {
        _name(path)
        for path in modules(SOURCE)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise)
        and node.exc is not None
        and "NotImplementedError" in ast.dump(node.exc)
    }
    assert stubs <= HOOKS


def test_every_module_says_what_it_is() -> None:
    silent = [_name(path) for path in modules(SOURCE) if not ast.get_docstring(ast.parse(path.read_text()))]
    assert not silent

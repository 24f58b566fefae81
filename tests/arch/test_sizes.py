"""One noun a module: aim at 150 lines, think again at 300, stop at 500."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.tree import ROOT, SOURCE, TESTS, modules

LIMIT = 500
# A function fits a screen. Tables and scripts of tests may run on.
FUNCTION_LIMIT = 60
ALL = [*modules(SOURCE), *modules(TESTS)]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_module_is_longer_than_the_limit() -> None:
    found = {_name(path): len(path.read_text().splitlines()) for path in ALL}
    assert {name: count for name, count in found.items() if count > LIMIT} == {}


def test_functions_fit_a_screen() -> None:
    long = {
        f"{_name(path)}: {node.name}": node.end_lineno - node.lineno + 1
        for path in modules(SOURCE)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LIMIT
    }
    assert long == {}

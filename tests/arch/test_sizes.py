"""One noun a module: aim at 150 lines, think again at 300, stop at 500."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.tree import ROOT, SOURCE, TESTS, modules

LIMIT = 500
# A function fits a screen. Tables and scripts of tests may run on.
FUNCTION_LIMIT = 60
ALL = [*modules(SOURCE), *modules(TESTS)]


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_is_longer_than_the_limit(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LIMIT


@pytest.mark.parametrize("path", modules(SOURCE), ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_fit_a_screen(path: Path) -> None:
    tree = ast.parse(path.read_text())
    long = {
        node.name: node.end_lineno - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LIMIT
    }
    assert not long

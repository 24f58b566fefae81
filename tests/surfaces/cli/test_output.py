"""Text for people: what fits a terminal, and what is left out."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.surfaces.cli import output


def test_without_a_terminal_nothing_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert output.columns() > 1000
    monkeypatch.setenv("COLUMNS", "60")
    assert output.columns() == 60


def test_shorten_on_either_side() -> None:
    assert output.shorten("abcdef", 6) == "abcdef"
    assert output.shorten("abcdefg", 4) == "abc…"
    assert output.shorten("/home/me/models/x.gguf", 10, left=True) == "…ls/x.gguf"
    assert output.shorten("日本語モデル", 5) == "日本…"


def test_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert output.home("/home/me/x/y") == "~/x/y"
    assert output.home("/home/me") == "~"
    assert output.home("/home/mean/x") == "/home/mean/x"
    monkeypatch.setenv("HOME", "/")
    assert output.home("/etc") == "/etc"


def test_wrap_keeps_commands_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = output.wrap("one two three four: `relaydesk model set x url=y`, five six", "    ", "  ")
    assert lines == ["  one two three four:", "    `relaydesk model set x url=y`, five", "    six"]


def test_a_table_gives_way_where_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    rows = [("a-name-that-is-long", "warm", "/a/path/that/is/long.gguf")]
    lines = output.table(("A", "B", "C"), rows, indent="", shrink=(2, 0), left=(2,))
    assert lines[1] == "a-name-that-i…  warm  …ng.gguf"
    monkeypatch.setenv("COLUMNS", "100")
    assert output.table(("A", "B", "C"), rows, indent="", shrink=(2, 0))[1] == "  ".join(rows[0])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 1 << 20), max_size=8), st.integers(0, 200))
def test_shares_add_up_and_lose_no_part(parts: list[int], length: int) -> None:
    cells = output.shares(parts, length)
    there = sum(1 for part in parts if part)
    assert all((cell > 0) == (part > 0) for cell, part in zip(cells, parts, strict=True)) or not there
    if there:
        assert sum(cells) == max(length, there)


def test_stacked() -> None:
    assert output.stacked([("a", 1), ("b", 0), ("c", 3)], 8) == "aacccccc"
    assert output.stacked([("a", 0)], 8) == ""


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="ab `", max_size=200), st.integers(20, 90))
def test_wrapped_lines_lose_no_word(text: str, columns: int) -> None:
    old = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(columns)
    try:
        lines = output.wrap(text, "  ")
    finally:
        os.environ.pop("COLUMNS") if old is None else os.environ.__setitem__("COLUMNS", old)
    assert " ".join(" ".join(lines).split()) == " ".join(text.split())

"""``keys.toml``: good lines count, bad ones are named, nothing raises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaydesk.surfaces.console.bindings import BY_ID, TABLE
from relaydesk.surfaces.console.keymap import RESERVED, Keymap, clashes, load_keymap, read_keymap


def test_no_file_is_no_problem(tmp_path: Path) -> None:
    assert load_keymap(tmp_path / "keys.toml") == Keymap()


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('[keys]\n"view.pause" = "P"\n"app.help" = "f1, ?"\n')
    keymap = load_keymap(path)
    assert keymap == Keymap({"view.pause": "P", "app.help": "f1,question_mark"})
    assert keymap.of(BY_ID["view.pause"]) == "P"
    assert keymap.of(BY_ID["app.quit"]) == BY_ID["app.quit"].keys


@pytest.mark.parametrize("text", ["[keys\n", '[keys]\n"view.pause" = "P', "\x00"])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    keymap = load_keymap(path)
    assert keymap.keys == {}
    assert str(path) in keymap.problems[0]
    path.write_bytes(b"\xff\xfe")
    assert load_keymap(path).problems


@pytest.mark.parametrize(
    ("given_keys", "problem"),
    [
        ({"view.pose": "P"}, "there is no action 'view.pose', perhaps 'view.pause'"),
        ({"view.pause": 3}, "view.pause must be text"),
        ({"view.pause": "ctrl+b"}, "'ctrl+b' has a fixed meaning"),
        ({"view.pause": "P,y"}, "'y' has a fixed meaning"),
        ({"view.pause": "q"}, "'q' already means app.quit"),
        ({"view.pause": "s"}, "'s' already means list.sort"),
        ({"view.pause": "X", "view.theme": "X"}, "'X' already means"),
    ],
)
def test_a_bad_line_is_left_out_and_named(given_keys: dict[str, Any], problem: str) -> None:
    keymap = read_keymap({**given_keys, "app.palette": "f2"})
    assert problem in keymap.problems[0]
    assert keymap.keys["app.palette"] == "f2"
    assert keymap.keys.keys() - {"app.palette", "view.theme"} == set()


def test_two_actions_may_swap_keys() -> None:
    assert read_keymap({"view.pause": "t", "view.theme": "p"}) == Keymap(
        {"view.pause": "t", "view.theme": "p"}
    )


KEYS = st.sampled_from(["a", "P", "q", "y", "ctrl+b", "f5", "?", "", "a,b", "ctrl+x"])


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.sampled_from([action.id for action in TABLE]) | st.text(max_size=5), KEYS, max_size=5)
)
def test_whatever_is_asked_no_clash_comes_of_it(wanted: dict[str, str]) -> None:
    import dataclasses

    keymap = read_keymap(wanted)
    table = [dataclasses.replace(action, keys=keymap.of(action)) for action in TABLE]
    assert clashes(table) == []
    assert not {key for keys in keymap.keys.values() for key in keys.split(",")} & RESERVED
    assert len(keymap.keys) + len(keymap.problems) == len(wanted)

"""The table of commands, and that every command which a message or a document names is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from relaydesk.surfaces.cli.main import cli
from relaydesk.surfaces.cli.verbs import VERBS, paths, verb
from tests.support.tree import ROOT

# `relaydesk …` and `sudo relaydesk …` between backticks, and lines of a block of commands in a document.
_QUOTED = re.compile(r"`(?:sudo )?(?:relaydesk|relay) ([a-z-][^`\n]*)`")
_LINE = re.compile(r"^(?:relaydesk) ([a-z-].*)$", re.M)
_IN_TEXT = re.compile(r"sudo relaydesk ([a-z-]+[^\"'`]*)")


def named() -> Iterator[tuple[str, str]]:
    """Everything our sources and documents call a command of ours, with the file that does."""
    files = [ROOT / "README.md", *ROOT.glob("relaydesk/**/*.py"), *ROOT.glob("relaydesk/docs/**/*.md")]
    for file in files:
        text = file.read_text("utf-8")
        patterns = (_QUOTED, _LINE) if file.suffix == ".md" else (_QUOTED, _IN_TEXT)
        for pattern in patterns:
            for match in pattern.finditer(text):
                yield str(file.relative_to(ROOT)), match[1].partition("#")[0].strip()


NAMED = sorted(set(named()))


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that words begin with, and the words left. Raises where there is none."""
    command: click.Command = cli
    ctx = click.Context(cli)
    while isinstance(command, click.Group) and words and not words[0].startswith(("-", "{")):
        found = command.get_command(ctx, words[0])
        assert found is not None, f"there is no command {words[0]!r}"
        command, words = found, words[1:]
    return command, words


def test_there_is_something_to_check() -> None:
    assert len(NAMED) > 30
    assert {"README.md", "relaydesk/surfaces/cli/status.py"} <= {file for file, _ in NAMED}


@pytest.mark.parametrize(("file", "line"), NAMED, ids=lambda value: value.replace("/", "."))
def test_every_command_that_is_named_exists(file: str, line: str) -> None:
    command, rest = command_of(line.split())
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help"}
    for word in rest:
        if word.startswith("--"):
            assert word.partition("=")[0].rstrip(",.;:") in known, f"{file}: {line}: no option {word}"


def test_the_check_sees_what_is_wrong() -> None:
    for line in ("nonsense", "model nonsense"):
        with pytest.raises(AssertionError):
            command_of(line.split())


def test_paths() -> None:
    found = list(paths())
    assert {"status", "model", "model list", "request show", "tls renew-ca"} <= set(found)
    assert len(found) == len(set(found))
    assert all((path.partition(" ")[0] in {each.name for each in VERBS}) for path in found)


def test_every_verb_below_is_one_of_its_group() -> None:
    for top in VERBS:
        if top.built and top.below:
            group = top.load()
            assert isinstance(group, click.Group)
            ctx = click.Context(group)
            assert group.list_commands(ctx) == [inner.name for inner in top.below]
            for inner in top.below:
                command = group.get_command(ctx, inner.name)
                assert command is not None
                assert command.name == inner.name


def test_a_verb_by_name() -> None:
    assert verb("model").name == "model"
    assert Path(str(ROOT), "relaydesk", "surfaces", "cli", "status.py").exists() == verb("status").built

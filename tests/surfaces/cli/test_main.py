"""What every verb shares: help, exit codes, one sentence for every error, quiet pipes, no stray colour."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from relaydesk.core.commands import FitModel
from relaydesk.surfaces.cli.main import VERBS, run

PROGRAM = [sys.executable, "-m", "relaydesk"]


def test_help_lists_what_is_built_and_only_that(cli: Any) -> None:
    result = cli("--help")
    assert result.code == 0
    listed = {line.split()[0] for line in result.out.partition("Commands:\n")[2].splitlines()}
    assert listed == {verb.name for verb in VERBS if verb.built}
    assert {"status", "model", "token", "doctor", "service"} <= listed
    assert not {"key", "node", "join", "relays", "mesh", "ledger", "backup"} & listed


def test_every_listed_verb_loads(cli: Any) -> None:
    for verb in VERBS:
        if verb.built and verb.name not in ("serve", "demo", "console"):
            result = cli(verb.name, "--help")
            assert (result.code, result.err) == (0, "")
            assert result.out.startswith(f"Usage: relaydesk {verb.name}")


def test_without_a_verb_help_where_there_is_no_console(cli: Any) -> None:
    result = cli()
    assert (result.code, result.out) == (0, cli("--help").out)


def test_version(cli: Any) -> None:
    assert cli("--version").out == "relaydesk 0.1.0\n"


def test_the_alias_names_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["/usr/bin/relay", "token"]) == 2
    assert capsys.readouterr().err == "relaydesk: Missing option '--api': see `relay token --help`\n"


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["nonsense"], "No such command 'nonsense': see `relaydesk --help`"),
        (["model", "pul"], "see `relaydesk model --help`"),
        (["model", "pull"], "Missing argument 'REF': see `relaydesk model pull --help`"),
        (["model", "pull", "nonsense://x"], "smollm2"),
        (["model", "add", "x.gguf", "--ctx", "many"], "'many' is not a whole number from 0 to"),
        (["model", "add", "x.gguf", "--name", "net/x"], "a model name has 1 to 128 characters"),
        (["model", "add", "x.gguf", "--kv-k", "q9"], "'q9' is none of f16"),
        (["model", "add", "x.gguf", "--keep-alive", "soon"], "'soon' is not a duration"),
        (["model", "set", "x"], "Nothing to change"),
        (["model", "set", "x", "colour=red"], "'colour=red' sets nothing of a model"),
        (["model", "set", "x", "slots=none"], "slots: 'none' is not a whole number from 1 to 64"),
        (["--config", "/nonexistent.toml", "status"], "/nonexistent.toml does not exist"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_misuse_is_code_2_and_one_sentence(cli: Any, node: Any, args: list[str], sentence: str) -> None:
    result = cli(*args)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("relaydesk: ")
    assert sentence in result.err
    assert result.err.count("\n") == 1
    assert node.seen == []


def test_a_bug_is_one_sentence_and_debug_shows_where(
    cli: Any, node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_self: Any, _path: str) -> bytes:
        raise KeyError("no\nsuch\nthing")

    monkeypatch.setattr("relaydesk.surfaces.cli.attach.Node.get", fail)
    result = cli("status")
    assert result.code == 1
    assert result.err.startswith("relaydesk: something failed inside relaydesk (KeyError: ")
    assert result.err.count("\n") == 1
    monkeypatch.setenv("RELAY_DEBUG", "1")
    assert "Traceback" in cli("status").err


def test_a_full_disk_behind_stdout_is_a_sentence(state_dir: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "relaydesk: the output cannot be written (No space left on device)\n"


def test_a_reader_that_left_is_not_complained_about(node: Any) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*PROGRAM, "status"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def terminal(*args: str, env: dict[str, str] | None = None, typed: bytes = b"") -> tuple[int, str]:
    """Run the program on a terminal; its exit code and everything it showed."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*PROGRAM, *args],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **(env or {})},
        close_fds=True,
    )
    os.close(theirs)
    os.write(ours, typed)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(ours)
    return child.wait(10), shown.decode()


def test_colour_on_a_terminal_unless_it_is_not_wanted(node: Any) -> None:
    assert "\x1b[" in terminal("status")[1]
    assert "\x1b[" not in terminal("status", env={"NO_COLOR": "1"})[1]
    assert "\x1b[" not in terminal("status", env={"TERM": "dumb"})[1]


def test_a_question_on_a_terminal(node: Any) -> None:
    code, shown = terminal("model", "rm", "smollm2", typed=b"n\n")
    assert code == 1
    assert "This loses the registration" in shown
    assert "Nothing was changed." in shown
    assert node.seen == []
    code, shown = terminal("model", "rm", "smollm2", typed=b"y\n")
    assert code == 0
    assert [command.name for command in node.seen] == ["smollm2"]


def test_text_that_no_encoding_of_the_terminal_has(node: Any) -> None:
    done = subprocess.run(
        [*PROGRAM, "status"],
        env={**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"shed is ready" in done.stdout


def test_an_unbuilt_command_of_an_older_node(cli: Any, node: Any) -> None:
    from relaydesk.core.codec import fault_view
    from relaydesk.core.commands import Outcome
    from relaydesk.core.errors import Fault

    async def refuse(_command: Any) -> Outcome:
        return Outcome(ok=False, fault=fault_view(Fault("not_built", "this version cannot do fit-model yet")))

    node.answers[FitModel] = refuse
    result = cli("model", "fit", "x", "--json")
    assert (result.code, result.out) == (1, "")
    assert result.err == "relaydesk: this version cannot do fit-model yet\n"

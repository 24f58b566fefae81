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
from relaydesk.core.text import SafeText
from relaydesk.core.view.sections import MemoryView, ModelsView, ModelView
from relaydesk.surfaces.cli.main import VERBS, run

PROGRAM = [sys.executable, "-m", "relaydesk"]


def test_help_lists_what_is_built_and_only_that(cli: Any) -> None:
    result = cli("--help")
    assert result.code == 0
    listed = {line.split()[0] for line in result.out.partition("Commands:\n")[2].splitlines()}
    assert listed == {verb.name for verb in VERBS if verb.built}
    assert {"status", "model", "token", "doctor", "service"} <= listed
    assert not {"node", "join", "mesh", "backup"} & listed


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
    assert cli("--version").out == cli("-V").out == "relaydesk 0.1.0\n"


def test_the_alias_names_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["/usr/bin/relay", "model", "pull"]) == 2
    assert capsys.readouterr().err == "relaydesk: Missing argument 'REF': see `relay model pull --help`\n"


@pytest.mark.parametrize("group", ["model", "key", "audit", "config", "request", "service", "tls"])
def test_a_group_alone_prints_its_help_as_it_is(cli: Any, group: str) -> None:
    result = cli(group)
    assert (result.code, result.out) == (2, "")
    assert result.err == cli(group, "--help").out


def test_every_group_is_listed_with_all_its_verbs() -> None:
    for verb in VERBS:
        names = verb.help.rpartition(": ")[2].rstrip(".").split(", ") if verb.below else []
        assert names == [inner.name for inner in verb.below], verb.name


def test_every_line_of_help_is_a_sentence_on_one_line(cli: Any) -> None:
    for verb in VERBS:
        for each in (verb, *verb.below):
            assert each.help[0].isupper() and each.help.endswith("."), each.name
    for group in ([], ["model"], ["key"], ["audit"], ["config"], ["request"], ["service"], ["tls"]):
        listed = cli(*group, "--help").out.partition("Commands:\n")[2].splitlines()
        assert all(line.endswith(".") and line.split()[1][0].isupper() for line in listed), listed


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["list"], "did you mean `relaydesk model list` or `relaydesk key list`"),
        (["pull", "smollm2"], "did you mean `relaydesk model pull`?"),
        (["stauts"], "did you mean `relaydesk status`?"),
        (["model", "lst"], "did you mean `relaydesk model list`"),
        (["start"], "did you mean `relaydesk serve`?"),
        (["tls", "renew"], "did you mean `relaydesk tls renew-ca`?"),
        (["model", "status"], "did you mean `relaydesk status`?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistyped_verb_gets_what_may_be_meant(cli: Any, args: list[str], says: str) -> None:
    result = cli(*args)
    assert (result.code, result.out) == (2, "")
    assert says in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["nonsense"], "there is no command `relaydesk nonsense`: see `relaydesk --help`"),
        (["model", "pul"], "did you mean `relaydesk model pull`?"),
        (["demo", "--tokens", "0"], "0 is not a whole number from 1 to 512"),
        (["token"], "Say which: --api shows the key that clients of the API send"),
        (["request", "show"], "Give the ID of a request, or --last"),
        (["request", "show", "x", "--last"], "Give the ID of a request, or --last"),
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
    model = ModelView("smollm2", "cold", True, SafeText(""), "host", 2048)
    node.views["models"] = ModelsView(MemoryView("ram", 1, 1), (model,))
    code, shown = terminal("model", "rm", "smollm2", typed=b"n\n")
    assert code == 1
    assert "This forgets smollm2. It loses the registration" in shown
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

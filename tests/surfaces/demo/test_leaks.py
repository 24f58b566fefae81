"""What a search finds, and what it says where it could not look."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaydesk.surfaces.demo.leaks import Place, files, memory, search, spellings


@given(st.binary(max_size=40), st.text(st.characters(codec="ascii"), min_size=4), st.binary(max_size=40))
def test_a_text_is_found_in_base64_wherever_it_stands(before: bytes, text: str, after: bytes) -> None:
    whole = before + text.encode() + after
    assert any(each in base64.b64encode(whole) for each in spellings(text))
    assert any(each in whole.hex().encode() for each in spellings(text))


def test_addresses_that_look_alike_are_told_apart() -> None:
    for shift in range(3):
        other = base64.b64encode(bytes(shift) + b"http://127.84.4.9:8384")
        assert not any(each in other for each in spellings("127.83.4.9"))


def test_what_is_there_is_found_and_what_is_not_is_not() -> None:
    report = search(
        [
            Place("clean", lambda: [b"one planted two"], "planted", ("secret",)),
            Place("bad", lambda: [b"planted", b"a secret"], "planted", ("secret", "payer")),
        ]
    )
    assert report == {
        "searched": ["clean", "bad"],
        "not_searched": [],
        "found": 1,
        "found_in": ["bad"],
        "planted_found": True,
    }


def test_a_search_that_misses_what_was_planted_proves_nothing() -> None:
    report = search(
        [Place("one", lambda: [b"planted"], "planted", ()), Place("blind", lambda: [b""], "planted", ())]
    )
    assert report["planted_found"] is False
    assert report["planted_missed"] == ["blind"]
    assert search([])["planted_found"] is False


def test_a_place_that_cannot_be_read_is_named() -> None:
    def unreadable() -> Iterator[bytes]:
        raise PermissionError(1, "Operation not permitted")
        yield b""

    report = search([Place("memory", unreadable, "planted", ("secret",))])
    assert (report["searched"], report["not_searched"]) == ([], ["memory: Operation not permitted"])
    assert report["planted_found"] is False


def test_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "deep").write_bytes(b"deep")
    (tmp_path / "log").write_bytes(b"log")
    assert list(files(tmp_path, without=(tmp_path / "log",))) == [b"deep"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows a process's memory")
def test_the_memory_of_a_child() -> None:
    """It makes the word by itself, so that it stands in no argument and no file."""
    program = "import sys; word = bytes(map(int, sys.stdin.readline().split())); print(flush=True); input()"
    word = os.urandom(8).hex()
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(" ".join(str(each) for each in word.encode()) + "\n")
        child.stdin.flush()
        child.stdout.readline()
        report = search([Place("memory", lambda: memory(child.pid), word, ("never-" + word,))])
        child.stdin.write("\n")
    assert report["planted_found"] is True
    assert report["found"] == 0

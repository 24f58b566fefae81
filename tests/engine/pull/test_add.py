from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from relaydesk.core.errors import FaultError
from relaydesk.engine.pull.add import header_of, look_at
from tests.support.gguf_builder import tiny

PARTS = [tiny(split__no=n, split__count=2, split__tensors__count=8) for n in (0, 1)]


async def refused(path: Path | str) -> FaultError:
    with pytest.raises(FaultError) as caught:
        await look_at(path)
    assert caught.value.fault.hint
    assert "\x1b" not in caught.value.fault.sentence
    return caught.value


async def test_a_file_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "Tiny-Model.Q4_0.gguf"
    file.write_bytes(tiny())
    before = file.stat()
    monkeypatch.chdir(tmp_path)
    found = await look_at("Tiny-Model.Q4_0.gguf")
    assert found.path == file
    assert found.files == (file,)
    assert found.size == len(tiny())
    assert found.suggested_name == "tiny-model.q4_0"
    assert found.header.architecture == "llama"
    assert found.projector is None
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert sorted(os.listdir(tmp_path)) == [file.name]


async def test_a_name_that_says_nothing_gives_way_to_the_files_own(tmp_path: Path) -> None:
    file = tmp_path / ("sha256-" + "ab" * 32)
    file.write_bytes(tiny(general__name="Tiny Llama"))
    assert (await look_at(file)).suggested_name == "tiny-llama"


async def test_any_part_stands_for_all(tmp_path: Path) -> None:
    files = [tmp_path / f"m-0000{n}-of-00002.gguf" for n in (1, 2)]
    for file, content in zip(files, PARTS, strict=True):
        file.write_bytes(content)
    found = await look_at(files[1])
    assert found.path == files[0]
    assert found.files == tuple(files)
    assert found.size == sum(map(len, PARTS))
    assert found.suggested_name == "m"
    files[0].unlink()
    error = await refused(files[1])
    assert "m-00001-of-00002.gguf is missing" in error.fault.message


@pytest.mark.parametrize(
    ("others", "offered"),
    [
        (["mmproj-tiny-F16.gguf"], "mmproj-tiny-F16.gguf"),
        (["mmproj-tiny-F16.gguf", "tiny-Q8_0.gguf"], "mmproj-tiny-F16.gguf"),
        (["mmproj-tiny-F16.gguf", "another-Q8_0.gguf"], None),
        (["mmproj-tiny-F16.gguf", "mmproj-tiny-BF16.gguf"], None),
    ],
)
async def test_a_projector_that_plainly_belongs_to_it(
    tmp_path: Path, others: list[str], offered: str | None
) -> None:
    file = tmp_path / "tiny-Q4_0.gguf"
    file.write_bytes(tiny())
    for name in others:
        (tmp_path / name).write_bytes(b"GGUF")
    found = (await look_at(file)).projector
    assert (found.name if found else None) == offered


@pytest.mark.parametrize(
    ("kind", "code", "says"),
    [
        ("missing", "not_found", "there is no file"),
        ("folder", "bad_model_file", "is a directory"),
        ("pipe", "bad_model_file", "is a device, pipe or socket"),
        ("socket", "bad_model_file", "is a device, pipe or socket"),
        ("empty", "bad_model_file", "is empty"),
        ("text", "bad_model_file", "is not a GGUF file"),
        ("cut", "bad_model_file", "is cut off"),
        ("projector", "invalid_request", "is a projector, not a model"),
        ("parts", "bad_model_file", "claims 99999 parts"),
        ("loop", "storage_failed", "cannot read"),
        ("long", "storage_failed", "cannot read"),
        ("nul", "invalid_request", "no path"),
        ("nothing", "invalid_request", "no path"),
    ],
)
async def test_what_cannot_be_added(tmp_path: Path, kind: str, code: str, says: str) -> None:
    path: Path | str = tmp_path / "a\x1b[31m.gguf"
    assert isinstance(path, Path)
    if kind == "folder":
        path.mkdir()
        (path / "m.gguf").write_bytes(b"")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "parts":
        path = tmp_path / "m-00001-of-99999.gguf"
        path.write_bytes(tiny())
    elif kind == "long":
        path = tmp_path / ("x" * 300)
    elif kind in ("nul", "nothing"):
        path = "a\0b" if kind == "nul" else ""
    elif kind != "missing":
        content = {
            "empty": b"",
            "text": b"hello, world" * 10,
            "cut": tiny()[:200],
            "projector": tiny(general__type="mmproj", general__architecture="clip"),
        }[kind]
        path.write_bytes(content)
    error = await refused(path)
    assert error.fault.code == code
    assert says in error.fault.message
    if kind == "folder":
        assert "m.gguf" in error.fault.hint


async def test_a_file_that_is_shortened_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Mapped into memory, such a file ends the whole process with SIGBUS.
    file = tmp_path / "m.gguf"
    file.write_bytes(tiny())
    size_of = os.fstat

    def then_shortened(fd: int) -> os.stat_result:
        found = size_of(fd)
        os.truncate(file, 100)
        return found

    monkeypatch.setattr(os, "fstat", then_shortened)
    with pytest.raises(FaultError, match=r"cut off|more than a file of 100 bytes"):
        header_of(file)


def test_a_long_header_is_read_in_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(tiny())
    whole = header_of(file)
    monkeypatch.setattr("relaydesk.engine.pull.add._FIRST_READ", 64)
    assert header_of(file) == whole
    monkeypatch.setattr("relaydesk.engine.pull.add._LAST_READ", 128)
    with pytest.raises(FaultError, match="has a header longer than the 128 bytes"):
        header_of(file)


def test_the_next_step_fits_what_is_wrong(tmp_path: Path) -> None:
    loop = tmp_path / "loop.gguf"
    loop.symlink_to(loop)
    with pytest.raises(FaultError) as caught:
        header_of(loop)
    assert caught.value.fault.hint == "check the path"

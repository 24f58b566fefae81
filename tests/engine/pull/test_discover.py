from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from relaydesk.engine.clock import SystemClock
from relaydesk.engine.pull import discover as module
from relaydesk.engine.pull.discover import Store, Suggestion, discover, search, stores


def put(path: Path, content: bytes = b"GGUF and more") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def manifest(root: Path, name: str, layers: dict[str, str]) -> None:
    media = "application/vnd.ollama.image."
    listed = [{"mediaType": media + kind, "digest": digest, "size": 3} for kind, digest in layers.items()]
    put(root / "manifests" / name, json.dumps({"schemaVersion": 2, "layers": listed}).encode())


def names(found: list[Suggestion]) -> list[str]:
    return [one.name for one in found]


async def test_the_three_stores(tmp_path: Path) -> None:
    home = tmp_path / "home"
    ollama = home / ".ollama" / "models"
    manifest(
        ollama,
        "registry.ollama.ai/library/qwen2.5/0.5b",
        {"model": "sha256:" + "a" * 64, "projector": "sha256:" + "b" * 64, "template": "sha256:" + "c" * 64},
    )
    model, projector = (put(ollama / "blobs" / f"sha256-{char * 64}") for char in "ab")
    manifest(ollama, "hf.co/owner/Llama-3-GGUF/latest", {"model": "sha256:" + "d" * 64})
    put(ollama / "blobs" / ("sha256-" + "d" * 64), b"GGUF")
    studio = put(home / ".lmstudio" / "models" / "pub" / "repo" / "Phi-Q4_0.gguf")
    beside = put(studio.with_name("mmproj-F16.gguf"))
    repository = home / ".cache" / "huggingface" / "hub" / "models--owner--Big-GGUF"
    links = []
    for number in (1, 2):
        blob = put(repository / "blobs" / f"blob{number}")
        link = repository / "snapshots" / "c0ffee" / f"Big-Q8_0-0000{number}-of-00002.gguf"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
        links.append(link)
    found = [one for one in await discover({}, home, SystemClock()) if home in one.path.parents]
    assert [(one.source, one.name, one.path, one.size, one.projector) for one in found] == [
        ("hub", "big-q8_0", links[0], 26, None),
        ("lmstudio", "phi-q4_0", studio, 13, beside),
        ("ollama", "llama-3", ollama / "blobs" / ("sha256-" + "d" * 64), 4, None),
        ("ollama", "qwen2.5:0.5b", model, 13, projector),
    ]


def test_settings_of_the_other_programs_move_their_stores(tmp_path: Path) -> None:
    def paths(**environ: str) -> set[Path]:
        return {store.path for store in stores(environ, tmp_path)}

    assert Path("/o") in paths(OLLAMA_MODELS="/o")
    assert Path("/h/hub") in paths(HF_HOME="/h", XDG_CACHE_HOME="/c")
    assert Path("/k") in paths(HF_HOME="/h", HF_HUB_CACHE="/k")
    assert Path("/c/huggingface/hub") in paths(XDG_CACHE_HOME="/c")


def test_what_is_no_model_is_not_suggested(tmp_path: Path) -> None:
    root = tmp_path / "models"
    secret = put(tmp_path / "secret", b"not a model")
    put(root / "a" / "text.gguf", b"hello")
    put(root / "a" / "empty.gguf", b"")
    put(root / "a" / "mmproj.gguf")
    put(root / "a" / "half-00001-of-00002.gguf")
    put(root / "a" / "model.bin")
    os.mkfifo(root / "a" / "pipe.gguf")
    (root / "a" / "loop.gguf").symlink_to("loop.gguf")
    (root / "a" / "secret.gguf").symlink_to(secret)
    (root / "a" / "up").symlink_to(root)
    put(root / "b" / "good.gguf")
    os.link(root / "b" / "good.gguf", root / "b" / "same.gguf")
    assert names(search((Store("lmstudio", root),), SystemClock())) == ["good"]


def test_a_hub_link_out_of_its_repository_is_not_followed(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside.gguf")
    snapshot = tmp_path / "hub" / "models--o--r" / "snapshots" / "c"
    snapshot.mkdir(parents=True)
    (snapshot / "m.gguf").symlink_to(outside)
    put(tmp_path / "hub" / "datasets--o--r" / "snapshots" / "c" / "d.gguf")
    assert search((Store("hub", tmp_path / "hub"),), SystemClock()) == []
    put(snapshot / "real.gguf")
    assert names(search((Store("hub", tmp_path / "hub"),), SystemClock())) == ["real"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"layers": 3}',
        b'{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../secret"}]}',
        b'{"layers": [{"mediaType": "application/vnd.ollama.image.model"}]}',
        b'{"layers": ' + b"[" * 20_000,
    ],
)
def test_hostile_manifests(tmp_path: Path, content: bytes) -> None:
    put(tmp_path / "secret")
    put(tmp_path / "o" / "manifests" / "host" / "library" / "evil" / "latest", content)
    put(tmp_path / "o" / "manifests" / "stray", content)
    assert search((Store("ollama", tmp_path / "o"),), SystemClock()) == []


def test_a_name_cannot_move_the_cursor(tmp_path: Path) -> None:
    put(tmp_path / "a\x1b[2J\u202e" / "evil\x1b]0;x\x07.gguf")
    (found,) = search((Store("lmstudio", tmp_path),), SystemClock())
    assert found.path.exists()
    assert found.shown.isprintable()
    assert found.name == "evil-0-x"


def test_a_path_that_is_no_text_is_left_out(tmp_path: Path) -> None:
    put(Path(os.fsdecode(os.fsencode(tmp_path) + b"/a/\xff.gguf")))
    put(tmp_path / "a" / "b.gguf")
    assert names(search((Store("lmstudio", tmp_path),), SystemClock())) == ["b"]


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        put(tmp_path / "a" / f"m{number:02}.gguf")
    place = (Store("lmstudio", tmp_path),)
    monkeypatch.setattr(module, "MAX_FOUND", 10)
    assert len(search(place, SystemClock())) == 10
    monkeypatch.setattr(module, "MAX_FOUND", 200)
    monkeypatch.setattr(module, "MAX_ENTRIES", 20)
    assert search(place, SystemClock()) == []
    monkeypatch.setattr(module, "MAX_ENTRIES", 20_000)
    monkeypatch.setattr(module, "MAX_S", -1.0)
    assert search(place, SystemClock()) == []
    monkeypatch.setattr(module, "MAX_S", 2.0)
    put(tmp_path.joinpath(*"123456789") / "deep.gguf")
    assert len(search(place, SystemClock())) == 30
